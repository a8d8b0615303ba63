package attacks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

const payTwice = `
flow: pay
version: "1"
activities:
  start: {type: trigger}
  first: {type: worker, topic: first}
  money: {type: worker, topic: money}
transitions: {start: [first], first: [money]}
`

// bank counts the payments of each job. first waits until it is let go.
type bank struct {
	mu    sync.Mutex
	paid  map[string]int
	letGo chan struct{}
}

func newBank() *bank { return &bank{paid: map[string]int{}, letGo: make(chan struct{})} }

func (b *bank) payments(job string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paid[job]
}

func (b *bank) handlers() *workers.Registry {
	reg := workers.New()
	workers.Handle(reg, "first", func(ctx context.Context, _ map[string]string) (string, error) {
		select {
		case <-b.letGo:
			return "went on", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	workers.Handle(reg, "money", func(ctx context.Context, _ map[string]string) (string, error) {
		return effects.Do(ctx, "pay", func(ctx context.Context) (string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.paid[workers.Info(ctx).Key]++
			return "paid", nil
		}, effects.Guarded)
	})
	return reg
}

// copied is a space on a cluster of its own, which can be copied and put back.
func copied(t *testing.T) (*target, *dev.Postgres) {
	t.Helper()
	pg := devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"shop"}})
	return &target{&world.World{T: t, Postgres: pg.DSN("shop"), NATS: devtest.NATS(t), Space: "shop"}, t}, pg
}

// recover accepts the database as `quipu recover` does.
func (g *target) recover(want postgres.Recovery) (postgres.Recovered, error) {
	g.t.Helper()
	ctx := g.t.Context()
	rt, err := testkit.Open(ctx, quipu.Config{Postgres: g.Postgres, NATS: g.NATS.URL(), Space: "shop", NoMigrate: true},
		below.Mode{AnyDatabase: true})
	require.NoError(g.t, err)
	defer rt.Close()
	want.Left, _, err = below.Witness(ctx, rt)
	require.NoError(g.t, err)
	return below.Of(rt).Recover(ctx, want)
}

// S13, F7: somebody puts yesterday's database under processes that run, and NATS that lives. It
// is the same cluster on the same timeline: only the marks tell. Nothing is decided before it is
// accepted, and then no payment is made twice, also of a job that had gone on since.
func TestDatabaseIsYesterdays(t *testing.T) {
	t.Parallel()
	g, pg := copied(t)
	b := newBank()
	found := &counted{metric: observer.MetricAnother}
	rt := g.open(b.handlers(), func(c *quipu.Config) { c.Observer = found })
	g.Deploy(rt, payTwice)
	g.Run(rt)
	job, err := rt.Start(t.Context(), "pay", "order-1", map[string]string{})
	require.NoError(t, err)
	require.NoError(t, pg.Backup(t.Context()))
	before := beat(t, rt)
	require.Eventually(t, func() bool { return beat(t, rt) >= before+2 }, patience, 50*time.Millisecond, "a day passes")
	close(b.letGo)
	_, err = rt.Wait(devtest.Context(t), job)
	require.NoError(t, err)
	require.Equal(t, 1, b.payments("order-1"))

	require.NoError(t, pg.Restore(t.Context(), false))
	world.Eventually(t, "the process says that it takes no work", func() error {
		if err := rt.Check(t.Context()); !errors.Is(err, quipu.ErrAnotherDatabase) {
			return fmt.Errorf("ready: %w", err)
		}
		if n := found.n.Load(); n != 1 {
			return fmt.Errorf("the metric counts %d", n)
		}
		return nil
	})
	_, err = rt.Start(t.Context(), "pay", "order-2", map[string]string{})
	require.ErrorIs(t, err, quipu.ErrAnotherDatabase, "no start is accepted")
	require.ErrorContains(t, err, "quipu recover")
	_, err = quipu.Open(t.Context(), quipu.Config{Postgres: g.Postgres, NATS: g.NATS.URL(), Space: "shop"})
	require.ErrorIs(t, err, quipu.ErrAnotherDatabase, "no process starts")
	_, err = g.recover(postgres.Recovery{})
	require.ErrorContains(t, err, "--lost-writes", "a loss is not passed over")
	got, err := g.recover(postgres.Recovery{LostWrites: true})
	require.NoError(t, err)
	require.Len(t, got.Requests, 1)
	require.Equal(t, "first", got.Requests[0].Topic)

	world.Eventually(t, "the process goes on", func() error { return rt.Check(t.Context()) })
	var letters []view.DeadLetter
	world.Eventually(t, "a person is asked", func() error {
		letters, err = rt.Operator().DeadLetters(t.Context(), quipu.DeadLetterFilter{})
		if err == nil && len(letters) != 1 {
			err = fmt.Errorf("letters: %v", letters)
		}
		return err
	})
	require.Equal(t, "order-1", letters[0].Key)
	require.Equal(t, 1, b.payments("order-1"), "it is not made again")
	require.NoError(t, rt.Operator().Decide(t.Context(), quipu.Decision{
		DeadLetter: letters[0].ID, Verdict: quipu.Done, Result: "paid", Who: "auditor", Reason: "the bank has it",
	}))
	_, err = rt.Wait(devtest.Context(t), job)
	require.NoError(t, err)
	require.Equal(t, 1, b.payments("order-1"))
	require.EqualValues(t, 1, found.n.Load(), "once a database")
}

// beat is that of the space, as NATS has it. One read has two seconds, and the next one continues it.
func beat(t *testing.T, rt *quipu.Runtime) (newest int64) {
	t.Helper()
	world.Eventually(t, "the marks are read", func() error {
		m, _, err := below.Witness(t.Context(), rt)
		newest = m.Beat
		return err
	})
	return newest
}
