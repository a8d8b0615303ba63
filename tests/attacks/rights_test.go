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
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

func logTo(l *devtest.Log) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lack is a right that a part does not get.
type lack struct {
	part  nats.Part
	right string
}

// guarded is a NATS server with a user for each role, whose rights are those that the program
// prints, but for what they lack. "" is no domain of JetStream.
func guarded(t *testing.T, domain string, lacks ...lack) (urlOf func(user string) string) {
	t.Helper()
	rights := func(part nats.Part, topics ...string) nats.Rights {
		r, err := nats.RightsOf(nats.Config{Space: "shop", Domain: domain}, part, topics)
		require.NoError(t, err)
		drop := func(s string) bool { return slices.Contains(lacks, lack{part, s}) }
		r.Publish, r.Subscribe = slices.DeleteFunc(r.Publish, drop), slices.DeleteFunc(r.Subscribe, drop)
		return r
	}
	var users strings.Builder
	for name, r := range map[string]nats.Rights{
		"engine": rights(nats.Engine), "worker": rights(nats.Worker, "pay.charge"), "client": rights(nats.Client), "ship": rights(nats.Worker, "ship"),
	} {
		fmt.Fprintf(&users, "{ user: %s, password: p, %s }\n", name, r)
	}
	fmt.Fprintf(&users, "{ user: stranger, password: p, permissions: { publish: { deny: \">\" }, subscribe: { deny: \">\" } } }\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:-1\njetstream: { store_dir: %q, domain: %q }\nauthorization: { users: [\n%s] }\n", dir, domain, &users)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	opts, err := natsserver.ProcessConfigFile(file)
	require.NoError(t, err, text)
	s := devtest.NATSOf(t, opts)
	return func(user string) string { return strings.Replace(s.ClientURL(), "//", "//"+user+":p@", 1) }
}

const payFlow = `{flow: pay, version: "1", output: "${ charge.output }", activities: {start: {type: trigger},
  charge: {type: worker, topic: pay.charge, input: "${ start.output }"}}, transitions: {start: [charge]}}`

// The child has a key of its own, so that its start goes by a message: one whose key follows from its
// parent begins in the same commit (L2).
const orderFlow = `{flow: order, version: "1", activities: {start: {type: trigger}, paid: {type: await, flow: pay, id: paid, input: 7}}, transitions: {start: [paid]}}`

const agreedFlow = `{flow: agreed, version: "1", activities: {start: {type: trigger}, on: {type: hook, signal: agreed, key: "${ job.id }"}}, transitions: {start: [on]}}`

// office is an engine, a worker and a client, each with its own rights on NATS.
func office(
	t *testing.T, domain string, lacks ...lack,
) (client *quipu.Runtime, urlOf func(string) string, log *devtest.Log, g *target) {
	t.Helper()
	g, log = without(t), &devtest.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	urlOf = guarded(t, domain, lacks...)
	as := func(user string, roles ...quipu.Role) func(*quipu.Config) {
		return func(c *quipu.Config) {
			c.NATS, c.NATSOptions.Domain, c.Roles, c.Logger = urlOf(user), domain, roles, logTo(log)
		}
	}
	reg := workers.New()
	workers.Handle(reg, "pay.charge", func(_ context.Context, amount int) (int, error) { return amount, nil })
	engine := g.open(nil, as("engine", quipu.RoleEngine))
	for _, flow := range []string{payFlow, orderFlow, agreedFlow} {
		g.Deploy(engine, flow)
	}
	g.Run(engine)
	g.Run(g.open(reg, as("worker", quipu.RoleWorkers)))
	return g.open(nil, as("client", quipu.RoleSchedule)), urlOf, log, g
}

// S4, S5: the rights that the program prints are enough for engines, workers and clients, also where
// JetStream has a domain.
func TestS4PrintedRightsAreEnough(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"", "hub"} {
		t.Run("domain "+domain, func(t *testing.T) {
			t.Parallel()
			client, urlOf, log, g := office(t, domain)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, key := range []string{"a", "b", "c"} {
				job, err := client.Start(ctx, "pay", key, 7)
				require.NoError(t, err)
				out, err := quipu.WaitAs[int](ctx, client, job)
				require.NoError(t, err)
				require.Equal(t, 7, out)
			}
			g.visit(client)
			bus, err := nats.Open(ctx,
				nats.Config{URL: urlOf("engine"), Space: "shop", Domain: domain, Inbox: nats.Inbox("shop", nats.Engine, nil)})
			require.NoError(t, err)
			defer func() { require.NoError(t, bus.Close()) }()
			require.NoError(t, bus.Reach(ctx, patience))
			queues, err := bus.Queues(ctx)
			require.NoError(t, err, "what engines measure (O4)")
			require.Equal(t, "pay.charge", queues.Topics[0].Topic)
			require.NotContains(t, log.String(), "ermissions", "nothing was refused")
		})
	}
}

// S4: each right of a worker and of a client is needed: without it the server refuses what it does.
func TestS4EachRightIsNeeded(t *testing.T) {
	t.Parallel()
	for part, topics := range map[nats.Part][]string{nats.Worker: {"pay.charge"}, nats.Client: nil} {
		r, err := nats.RightsOf(nats.Config{Space: "shop"}, part, topics)
		require.NoError(t, err)
		for _, right := range slices.Concat(r.Publish, r.Subscribe) {
			if strings.HasPrefix(right, "$JS.ACK.*.*.") {
				continue // of servers that put domain and account there, which this one does not
			}
			t.Run(string(part)+" "+right, func(t *testing.T) {
				t.Parallel()
				client, _, log, g := office(t, "", lack{part, right})
				g.visit(client)
				subject := strings.NewReplacer(".*", "", ".>", "").Replace(right)
				require.Eventually(t, func() bool {
					return strings.Contains(log.String(), "iolation for ") && strings.Contains(log.String(), subject)
				}, patience, 10*time.Millisecond)
			})
		}
	}
}

// visit does what a client does: it starts a job, one that awaits another, and one to which it sends
// a signal, and waits.
func (g *target) visit(client *quipu.Runtime) {
	g.t.Helper()
	ctx := g.t.Context()
	for _, name := range []string{"pay", "order", "agreed"} {
		job, err := client.Start(ctx, name, name, 7)
		require.NoError(g.t, err)
		waiting, cancel := context.WithTimeout(ctx, time.Millisecond)
		// it listens; where a right is missing the job ends when its rows are sent again
		_, _ = client.Wait(waiting, job)
		cancel()
	}
	_, err := client.Signal(ctx, "agreed", "agreed", nil)
	require.NoError(g.t, err)
}
