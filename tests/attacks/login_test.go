package attacks

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
)

// TestActsOfOtherRoles_S8: what is not for the login of a client or a worker is refused before the database does it,
// with what is missing and what to do; and an act of the owner, by who is not, with the same advice.
func TestActsOfOtherRoles_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	g.Deploy(g.roles(), part)
	engine := g.open(nil, as(g.login(admin, "engine"), quipu.RoleEngine))
	g.Run(engine)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f, err := flow.Parse("part.yaml", []byte(part))
	require.NoError(t, err)
	for _, login := range []string{g.login(admin, "client"), g.login(admin, "worker", "part.make")} {
		rt := g.open(nil, as(login))
		for what, act := range map[string]func() error{
			"to resume a job":     func() error { _, err := rt.Resume(ctx, quipu.Job{Key: "one"}); return err },
			"to fork a job":       func() error { _, err := rt.Fork(ctx, quipu.Job{Key: "one"}, 1, "two"); return err },
			"to deploy flows":     func() error { return rt.Deploy(ctx, f) },
			"to activate a flow":  func() error { return rt.Operator().Activate(ctx, "part", "1", "") },
			"to decide on a dead": func() error { return rt.Operator().Decide(ctx, quipu.Decision{Verdict: quipu.Retry}) },
			"to repair a job": func() error {
				_, err := rt.Operator().Repair(ctx, collation.NewJobID("shop", "one", 1), "", "")
				return err
			},
			"no right to that: give it": func() error { _, err := rt.Keys().Rotate(ctx, true); return err },
		} {
			err := act()
			require.ErrorIs(t, err, quipu.ErrLogin, what)
			require.ErrorIs(t, err, quipu.ErrUnavailable, what)
			require.ErrorContains(t, err, what)
			require.ErrorContains(t, err, "`quipu grant ")
			if _, database := errors.AsType[*pgconn.PgError](err); database {
				require.Equal(t, "no right to that: give it", what)
			}
		}
		require.NoError(t, rt.Deploy(ctx), "nothing is deployed")
	}
	worker := g.login(admin, "worker", "part.make")
	tx, err := g.connect(worker).Begin(ctx)
	require.NoError(t, err)
	_, err = g.open(nil, as(worker)).StartTx(ctx, tx, "part", "one", nil)
	require.ErrorIs(t, err, quipu.ErrLogin, "a worker asks for no start")
	require.ErrorContains(t, err, "`quipu grant ")
	require.ErrorIs(t, engine.SetExpireDefault(ctx, 0), quipu.ErrLogin, "an engine's login is not the owner's")
}
