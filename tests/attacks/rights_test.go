package attacks

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

func logTo(l *devtest.Log) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// guarded is a NATS server with a user for each role, whose rights are those that the program
// prints, but for the subjects in without.
func guarded(t *testing.T, without ...string) (urlOf func(user string) string) {
	t.Helper()
	rights := func(part nats.Part, topics ...string) nats.Rights {
		r, err := nats.RightsOf(nats.Config{Space: "shop"}, part, topics)
		require.NoError(t, err)
		drop := func(s string) bool { return slices.Contains(without, s) }
		r.Publish, r.Subscribe = slices.DeleteFunc(r.Publish, drop), slices.DeleteFunc(r.Subscribe, drop)
		return r
	}
	var users strings.Builder
	for name, r := range map[string]nats.Rights{
		"engine": rights(nats.Engine), "worker": rights(nats.Worker, "pay.charge"), "client": rights(nats.Client), "ship": rights(nats.Worker, "ship"),
	} {
		fmt.Fprintf(&users, "{ user: %s, password: p, %s }\n", name, r)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:-1\njetstream: { store_dir: %q }\nauthorization: { users: [\n%s] }\n", dir, &users)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	opts, err := natsserver.ProcessConfigFile(file)
	require.NoError(t, err, text)
	opts.NoSigs, opts.NoLog = true, true
	s, err := natsserver.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(patience))
	return func(user string) string { return strings.Replace(s.ClientURL(), "//", "//"+user+":p@", 1) }
}

const payFlow = `{flow: pay, version: "1", output: "${ charge.output }", activities: {start: {type: trigger},
  charge: {type: worker, topic: pay.charge, input: "${ start.output }"}}, transitions: {start: [charge]}}`

// office is an engine, a worker and a client, each with its own rights on NATS.
func office(t *testing.T, without ...string) (client *quipu.Runtime, urlOf func(string) string, log *devtest.Log, g *target) {
	t.Helper()
	g, log = &target{t: t, dsn: devtest.Postgres(t)}, &devtest.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	urlOf = guarded(t, without...)
	as := func(user string, roles ...quipu.Role) func(*quipu.Config) {
		return func(c *quipu.Config) { c.NATS, c.Roles, c.Logger = urlOf(user), roles, logTo(log) }
	}
	reg := workers.New()
	workers.Handle(reg, "pay.charge", func(_ context.Context, amount int) (int, error) { return amount, nil })
	engine := g.open(nil, as("engine", quipu.RoleEngine))
	g.deploy(engine, payFlow)
	g.run(engine)
	g.run(g.open(reg, as("worker", quipu.RoleWorkers)))
	return g.open(nil, as("client", quipu.RoleSchedule)), urlOf, log, g
}

// S4: the rights that the program prints are enough for engines, workers and clients.
func TestS4PrintedRightsAreEnough(t *testing.T) {
	t.Parallel()
	client, urlOf, log, _ := office(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, key := range []string{"a", "b", "c"} {
		job, err := client.Start(ctx, "pay", key, 7)
		require.NoError(t, err)
		out, err := quipu.WaitAs[int](ctx, client, job)
		require.NoError(t, err)
		require.Equal(t, 7, out)
	}
	bus, err := nats.Open(ctx, nats.Config{URL: urlOf("engine"), Space: "shop", Inbox: nats.Inbox("shop", nats.Engine, nil)})
	require.NoError(t, err)
	defer func() { require.NoError(t, bus.Close()) }()
	require.NoError(t, bus.Reach(ctx, patience))
	queues, err := bus.Queues(ctx)
	require.NoError(t, err, "what engines measure (O4)")
	require.Equal(t, "pay.charge", queues.Topics[0].Topic)
	require.NotContains(t, log.String(), "ermissions", "nothing was refused")
}

// S4: each right of a worker is needed: without it the server refuses what the worker does.
func TestS4EachRightIsNeeded(t *testing.T) {
	t.Parallel()
	r, err := nats.RightsOf(nats.Config{Space: "shop"}, nats.Worker, []string{"pay.charge"})
	require.NoError(t, err)
	for _, right := range slices.Concat(r.Publish, r.Subscribe) {
		if strings.HasPrefix(right, "$JS.ACK.*.*.") {
			continue // of servers that put domain and account there, which this one does not
		}
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			client, _, log, _ := office(t, right)
			_, err := client.Start(t.Context(), "pay", "a", 7)
			require.NoError(t, err)
			subject := strings.NewReplacer(".*", "", ".>", "").Replace(right)
			require.Eventually(t, func() bool {
				return strings.Contains(log.String(), "iolation for ") && strings.Contains(log.String(), subject)
			}, patience, 10*time.Millisecond)
		})
	}
}

// A stolen login of a worker on NATS reads and writes nothing but what its topic needs.
func TestStolenNATSLoginOfAWorker(t *testing.T) {
	t.Parallel()
	urlOf := guarded(t)
	refused := make(chan error, 100)
	nc, err := natsgo.Connect(urlOf("ship"), natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	defer nc.Close()
	denied := func(subject string) {
		t.Helper()
		select {
		case err := <-refused:
			require.ErrorIs(t, err, natsgo.ErrPermissionViolation)
			require.ErrorContains(t, err, subject)
		case <-time.After(patience):
			require.Fail(t, "it is allowed", subject)
		}
	}
	for _, subject := range []string{
		"quipu.shop.work.pay.charge", "quipu.shop.work.ship", "quipu.shop.start", "quipu.shop.ended.00", "quipu.other.lane.3",
		"quipu.shop.consumer.pay.charge", "$JS.API.CONSUMER.MSG.NEXT.QUIPU_shop_WORK.work-pay=charge",
		"$JS.API.CONSUMER.MSG.NEXT.QUIPU_shop_LANES.lane-3", "$JS.API.CONSUMER.CREATE.QUIPU_shop_WORK.x", "$JS.API.STREAM.DELETE.QUIPU_shop_WORK",
		"$JS.API.STREAM.MSG.GET.QUIPU_shop_WORK", "$JS.ACK.QUIPU_shop_WORK.work-pay=charge.1.1.1.1.1",
	} {
		require.NoError(t, nc.Publish(subject, nil))
		denied(subject)
	}
	for _, subject := range []string{"quipu.shop.>", "_INBOX.>", "_INBOX.shop.engine.>", "_INBOX.shop.work-pay=charge.>", "$JS.ACK.>"} {
		_, err := nc.SubscribeSync(subject)
		require.NoError(t, err)
		denied(subject)
	}
}
