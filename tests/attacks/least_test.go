package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
	"github.com/quipu-journal/quipu/workers"
)

const chargeFlow = `
flow: charge
version: "1"
output: "${ c.output }"
activities:
  t: {type: trigger}
  h: {type: hook, signal: charge.agreed, key: "${ t.output.order }"}
  c: {type: worker, topic: pay.charge, input: "${ t.output.how }"}
transitions: {t: [h], h: [c]}
`

// least is a space whose processes each have a login of their own, with the least rights on both
// servers.
type least struct {
	*target
	urlOf func(user string) string
	log   *devtest.Log
}

// as opens a process under the least rights of a role. user is its name on NATS, "" for none.
func (l *least) as(reg *workers.Registry, login, user string, roles ...quipu.Role) *quipu.Runtime {
	l.t.Helper()
	return l.open(reg, as(login, roles...), func(c *quipu.Config) {
		if c.NATS, c.Logger = "", logTo(l.log); user != "" {
			c.NATS = l.urlOf(user)
		}
	})
}

// TestLeastRoles_S8: a space works when each part of it has a login of its own, on Postgres and
// on NATS: engine, worker, client, operator, retention, verifier. Nothing is refused to them.
func TestLeastRoles_S8(t *testing.T) {
	t.Parallel()
	l := &least{without(t), guarded(t, ""), &devtest.Log{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.log.String())
		}
	})
	admin := l.admin()
	l.Deploy(l.roles(), chargeFlow)
	charges := workers.New()
	workers.Handle(charges, "pay.charge", func(ctx context.Context, in string) (string, error) {
		return effects.Do(ctx, "charge", func(context.Context) (string, error) {
			if in == "lost" {
				return "", errors.New("connection cut off")
			}
			return "charged", nil
		})
	})
	l.Run(l.as(nil, l.login(admin, "engine"), "engine", quipu.RoleEngine, quipu.RoleSchedule))
	l.Run(l.as(charges, l.login(admin, "worker", "pay.charge"), "worker", quipu.RoleWorkers))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for user, client := range map[string]*quipu.Runtime{
		"with NATS":    l.as(nil, l.login(admin, "client"), "client", quipu.RoleSchedule),
		"without NATS": l.as(nil, l.login(admin, "client"), "", quipu.RoleSchedule),
	} {
		job, err := client.Start(ctx, "charge", user, map[string]any{"order": user, "how": "paid"})
		require.NoError(t, err)
		_, err = client.Signal(ctx, "charge.agreed", user, nil)
		require.NoError(t, err)
		out, err := client.Wait(ctx, job)
		require.NoError(t, err)
		require.JSONEq(t, `"charged"`, string(out))

		lost, err := client.Start(ctx, "charge", user+", lost", map[string]any{"order": user + ", lost", "how": "lost"})
		require.NoError(t, err)
		_, err = client.SignalAll(ctx, "charge.agreed", user+", lost", nil)
		require.NoError(t, err)
		_, err = client.Wait(ctx, lost, quipu.UntilParked(true))
		parked, is := errors.AsType[*quipu.ParkedError](err)
		require.True(t, is, "%v", err)
		l.decide(ctx, l.login(admin, "operator"), parked)
		out, err = client.Wait(ctx, lost)
		require.NoError(t, err)
		require.JSONEq(t, `"by hand"`, string(out))
	}
	_, err := below.Of(l.as(nil, l.login(admin, "retention"), "", quipu.RoleRetention)).Expire(ctx, 10)
	require.NoError(t, err)
	require.NotContains(t, l.log.String(), "ermission", "nothing was refused")
	verified, err := exec.CommandContext(ctx, journalVerify(t), "--postgres", l.login(admin, "verifier"), "--space", "shop", "--json").CombinedOutput()
	require.NoError(t, err, "%s", verified)
}

// decide acts on a dead letter under an operator's login, which the journal then has.
func (l *least) decide(ctx context.Context, login string, parked *quipu.ParkedError) {
	t := l.t
	t.Helper()
	rt := l.as(nil, login, "")
	require.NoError(t, rt.Operator().Decide(ctx, quipu.Decision{
		DeadLetter: parked.DeadLetters[0].ID, Verdict: quipu.Done, Result: json.RawMessage(`"by hand"`), Who: "ann", Reason: "in the books",
	}))
	said := 0
	for e, err := range rt.Journal(ctx, parked.Job) {
		require.NoError(t, err)
		if e.Operator != nil {
			said++
			require.Contains(t, login, "//"+e.Operator.Login+":")
			require.Equal(t, "ann", e.Operator.Who)
		}
	}
	require.Equal(t, 1, said)
}

func journalVerify(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "journal-verify")
	require.NoError(t, gobuild.Build("", to, "../../cmd/journal-verify"))
	return to
}
