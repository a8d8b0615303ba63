package linear

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/tests/rig"
)

// commitStatement is in what a client sends to commit: the name of the prepared
// statement.
const commitStatement = "\x00commit\x00"

// faults make trouble until the returned stop, after which nothing is cut,
// stopped or away.
func (w *world) faults() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i, c := range w.clients {
		dice := w.dice("network " + string(rune('0'+i)))
		wg.Go(func() {
			for rig.Pause(ctx, rig.Between(dice, 200*time.Millisecond, 1500*time.Millisecond)) {
				c.cut(ctx, dice)
			}
		})
	}
	for _, f := range []struct {
		name      string
		low, high time.Duration
		do        func(context.Context, *rand.Rand)
	}{
		{"F1 kills", time.Second, 3 * time.Second, w.kill},
		{"F2 stops", time.Second, 4 * time.Second, w.stop},
		{"F3 backends ended", 300 * time.Millisecond, 1500 * time.Millisecond, w.terminate},
		{"F4 Postgres restarts", 3 * time.Second, 6 * time.Second, w.restartPostgres},
		{"F9 NATS restarts", 2 * time.Second, 5 * time.Second, w.restartNATS},
		{"removals of the expired", 50 * time.Millisecond, 400 * time.Millisecond, w.expire},
	} {
		dice := w.dice(f.name)
		wg.Go(func() {
			for rig.Pause(ctx, rig.Between(dice, f.low, f.high)) {
				f.do(ctx, dice)
				w.count(f.name)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// run keeps engines until the returned stop.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for slot := range w.engines {
		dice := w.dice("engine " + string(rune('0'+slot)))
		wg.Go(func() { w.keep(ctx, slot, dice) })
	}
	return func() { cancel(); wg.Wait() }
}

// cut does something to one of the client's connections for a while.
func (c *client) cut(ctx context.Context, dice *rand.Rand) {
	c.mu.Lock()
	p, server := c.pg, "Postgres"
	if dice.IntN(5) == 0 {
		p, server = c.nats, "NATS"
	}
	c.mu.Unlock()
	hold := rig.Between(dice, 20*time.Millisecond, 600*time.Millisecond)
	if dice.IntN(20) == 0 {
		hold = patience + time.Second
	}
	if server == "Postgres" && dice.IntN(5) < 2 {
		p.DownAt(commitStatement)
		rig.Pause(ctx, hold)
		p.Heal()
		c.w.count("F3 commits without an answer")
		return
	}
	kinds := []struct {
		name string
		do   func()
	}{
		{"F11 down", p.Down},
		{"F11 up", p.Up},
		{"F11 both", p.Both},
		{"resets", p.Reset},
		{"refusals", func() { p.Refuse(); p.Reset() }},
		{"F15 slow", func() { p.Slow(rig.Between(dice, 5*time.Millisecond, 150*time.Millisecond), 5*time.Millisecond) }},
		{"F15 slices", func() { p.Slices(1, 20*time.Microsecond) }},
	}
	k := kinds[dice.IntN(len(kinds))]
	k.do()
	rig.Pause(ctx, hold)
	p.Heal()
	c.w.count(k.name + " of " + server)
}

// keep holds a slot: whenever its engine has gone, another takes its place.
func (w *world) keep(ctx context.Context, slot int, dice *rand.Rand) {
	for {
		e := rig.Start(w.t, w.log, os.Args[0], rig.Config(engineEnv, engineConfig{
			Postgres: w.dsn, NATS: w.url, Space: w.space, Stepwise: dice.IntN(3) == 0, MaxBatch: 1 + dice.IntN(2)*499,
		}))
		w.mu.Lock()
		w.engines[slot] = e
		w.mu.Unlock()
		select {
		case <-e.Gone:
			rig.Pause(ctx, 100*time.Millisecond)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			e.Kill()
			return
		}
	}
}

// victim is one of the engines, nil before the first.
func (w *world) victim(dice *rand.Rand) *rig.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engines[dice.IntN(len(w.engines))]
}

func (w *world) kill(_ context.Context, dice *rand.Rand) {
	if e := w.victim(dice); e != nil {
		e.Kill()
	}
}

func (w *world) stop(ctx context.Context, dice *rand.Rand) {
	if e := w.victim(dice); e != nil {
		goOn := e.Stand()
		rig.Pause(ctx, rig.Between(dice, ackWait/2, 2*ackWait))
		goOn()
	}
}

// terminate ends some of the server's sessions.
func (w *world) terminate(ctx context.Context, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		return // the server is away
	}
	defer func() { _ = c.Close(ctx) }()
	_, _ = c.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name LIKE 'quipu-%' AND random() < $1`, 0.1+0.4*dice.Float64())
}

// restartPostgres finishes when the server is back, whatever the context says.
func (w *world) restartPostgres(context.Context, *rand.Rand) {
	assert.NoError(w.t, w.pg.Restart(context.Background(), dev.StopImmediate))
}

// restartNATS finishes as restartPostgres does.
func (w *world) restartNATS(context.Context, *rand.Rand) {
	assert.NoError(w.t, w.nats.Restart(context.Background()))
}

// expire does what the role retention does every minute.
func (w *world) expire(ctx context.Context, _ *rand.Rand) {
	_, _ = below.Of(w.rt).Expire(ctx, 100) // Postgres may be away
}
