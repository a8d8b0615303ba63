package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// faults make trouble until the returned stop, after which nothing is cut,
// stopped or away.
func (w *stage) faults() (stop func()) {
	all := []world.Trouble{
		world.Every("F1 kills", time.Second, 3*time.Second, w.Kill),
		world.Every("F2 stops", time.Second, 4*time.Second, w.Stop),
		world.Every("F3 backends ended", 300*time.Millisecond, 1500*time.Millisecond, w.terminate),
		world.Every("F4 Postgres restarts", 3*time.Second, 6*time.Second, w.RestartPostgres),
		world.Every("F9 NATS restarts", 2*time.Second, 5*time.Second, w.RestartNATS),
		world.Every("removals of the expired", 50*time.Millisecond, 400*time.Millisecond, w.expire),
	}
	for i, c := range w.clients {
		all = append(all, world.Every(fmt.Sprint("network ", i), 200*time.Millisecond, 1500*time.Millisecond, c.cut))
	}
	return w.Make(all...)
}

// run keeps engines until the returned stop.
func (w *stage) run() (stop func()) {
	return w.Keep(engines, func(dice *rand.Rand) *world.Process {
		return world.StartProcess(w.t, w.log, os.Args[0], world.Variable(engineEnv, engineConfig{
			Postgres: w.dsn, NATS: w.url, Space: w.space, Stepwise: dice.IntN(3) == 0, MaxBatch: 1 + dice.IntN(2)*499,
			HotBytes: -dice.IntN(2),
		}))
	}, (*world.Process).Kill)
}

// cut does something to one of the client's connections for a while.
func (c *client) cut(ctx context.Context, dice *rand.Rand) {
	c.mu.Lock()
	p, server := c.pg, "Postgres"
	if dice.IntN(5) == 0 {
		p, server = c.nats, "NATS"
	}
	c.mu.Unlock()
	hold := world.Between(dice, 20*time.Millisecond, 600*time.Millisecond)
	if dice.IntN(20) == 0 {
		hold = patience + time.Second
	}
	if server == "Postgres" && dice.IntN(5) < 2 {
		p.DownAt(world.CommitStatement)
		world.Pause(ctx, hold)
		p.Heal()
		c.w.Count("F3 commits without an answer")
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
		{"F15 slow", func() { p.Slow(world.Between(dice, 5*time.Millisecond, 150*time.Millisecond), 5*time.Millisecond) }},
		{"F15 slices", func() { p.Slices(1, 20*time.Microsecond) }},
	}
	k := kinds[dice.IntN(len(kinds))]
	k.do()
	world.Pause(ctx, hold)
	p.Heal()
	c.w.Count(k.name + " of " + server)
}

// terminate ends some of the server's sessions.
func (w *stage) terminate(ctx context.Context, dice *rand.Rand) {
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

// expire does what the role retention does every minute.
func (w *stage) expire(ctx context.Context, _ *rand.Rand) {
	_, _ = below.Of(w.rt).Expire(ctx, 100) // Postgres may be away
}
