package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// rewinds are the kinds after which commits are missing. Their cells have a Guarded effect, which
// the service outside must see once, although nothing of it is recorded.
var rewinds = []*kind{
	{name: "F6 standby promoted with a lag", do: (*cell).promote, loses: true},
	{name: "F7 copy restored", do: func(c *cell) { c.restore(false) }, loses: true},
	{name: "F7 restored to a point in time", do: func(c *cell) { c.restore(true) }, loses: true},
}

// promote makes a standby of the database as it is now, lets the processes go on without it, and
// promotes it.
func (c *cell) promote() {
	standby, err := c.lane.pg.Standby(c.t.Context())
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, standby.Stop(dev.StopImmediate)) }) // nothing, if it was promoted
	lag(c.t.Context(), c, standby)
	c.future()
	require.NoError(c.t, c.lane.pg.Promote(c.t.Context(), standby))
	c.recover()
}

// lag ends the streaming of the standby: from now on it gets nothing.
func lag(ctx context.Context, c *cell, standby *dev.Postgres) {
	db, err := pgx.Connect(ctx, standby.DSN("postgres"))
	require.NoError(c.t, err)
	defer db.Close(context.Background())
	for _, do := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		_, err := db.Exec(ctx, do)
		require.NoError(c.t, err)
	}
	c.eventually("the standby streams no more", func() error {
		var n int
		err := db.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n)
		if err == nil && n > 0 {
			err = errors.New("it streams")
		}
		return err
	})
}

// restore makes a backup of the database as it is now, lets the processes go on, and puts the
// backup in its place, under them and NATS.
func (c *cell) restore(toPoint bool) {
	require.NoError(c.t, c.lane.pg.Backup(c.t.Context()))
	c.future()
	require.NoError(c.t, c.lane.pg.Restore(c.t.Context(), toPoint))
	c.recover()
}

// future lets the processes go on for two beats of the space: that is what gets lost.
func (c *cell) future() {
	mark := func() (m store.Mark) {
		c.eventually("the mark in NATS", func() (err error) { m, _, err = below.Witness(c.t.Context(), c.rt); return err })
		return m
	}
	before := mark()
	c.control.release()
	c.another()
	c.eventually("two beats", func() error {
		if now := mark(); now.Beat < before.Beat+2 {
			return fmt.Errorf("at %s, after %s", now, before)
		}
		return nil
	})
	c.unwatch() // what it has seen does not hold from now on
}

// recover waits until the processes have noticed, sees that nothing happens, and accepts the
// database.
func (c *cell) recover() {
	c.eventually("S13: the loss is noticed", func() error {
		if err := c.rt.Check(c.t.Context()); !errors.Is(err, quipu.ErrAnotherDatabase) {
			return fmt.Errorf("ready: %w", err)
		}
		return nil
	})
	ctx := c.t.Context()
	rt, err := testkit.Open(ctx, quipu.Config{Postgres: c.dsn, NATS: c.lane.url, Space: c.space, NoMigrate: true},
		below.Mode{AnyDatabase: true})
	require.NoError(c.t, err)
	defer rt.Close()
	left, _, err := below.Witness(ctx, rt)
	require.NoError(c.t, err)
	st := below.Of(rt)
	got, err := st.Recover(ctx, postgres.Recovery{Left: left, LostWrites: true, LostStarts: time.Hour})
	require.NoError(c.t, err)
	require.Error(c.t, got.Why)
	require.Greater(c.t, got.Epoch, got.Before)
	c.eventually("the process goes on", func() error { return c.rt.Check(c.t.Context()) })
	c.note = fmt.Sprintf("%d requests in doubt: %v", len(got.Requests), got.Why)
}

// answer decides on the dead letters of effects in doubt as a person does who looks at the books
// of the service outside.
func (c *cell) answer() {
	ctx := c.t.Context()
	letters, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{})
	if err != nil {
		return // it is tried again
	}
	for i := range letters {
		d := quipu.Decision{DeadLetter: letters[i].ID, Verdict: quipu.Retry, Who: "auditor", Reason: "not in the books"}
		key, err := c.inDoubt(ctx, quipu.Job{ID: letters[i].Job})
		if err != nil {
			continue
		}
		if applied, _ := c.outside.Books(); applied[key] != "" {
			receipt, _ := json.Marshal(map[string]string{"receipt": key}) // as the service answers
			d.Verdict, d.Result, d.Reason = quipu.Done, json.RawMessage(receipt), "in the books"
		}
		if err := c.rt.Operator().Decide(ctx, d); err == nil {
			c.asked++
		}
	}
}

// inDoubt is the key of the Guarded effect of a job that has begun and has no outcome.
func (c *cell) inDoubt(ctx context.Context, job quipu.Job) (string, error) {
	all, err := below.Of(c.rt).JobEffects(ctx, job.ID)
	for i := range all {
		if e := &all[i]; e.Class == store.ClassGuarded && e.State == store.EffectStarted {
			return e.Key.String(), nil
		}
	}
	return "", errors.Join(err, errors.New("no effect is in doubt"))
}

// guardedOnce sees that the service outside was asked once for each Guarded effect.
func (c *cell) guardedOnce() {
	applied, asked := c.outside.Books()
	times := map[string]int{}
	for key, what := range applied {
		if strings.HasPrefix(what, "ship ") {
			times[what] += asked[key]
		}
	}
	require.Len(c.t, times, len(c.started))
	for what, n := range times {
		require.Equal(c.t, 1, n, "S13: %s", what)
	}
}

// forget takes out of the books what was done under a key that was lost with its database, where
// the same was done once more under the recorded key. A child that was lost begins again under
// another id if the answers before it took another number of attempts (C8), and an outcome "not
// done" that was lost is not counted in the key (E1).
func (w *facts) forget(ctx context.Context) error {
	rows, err := w.db.Query(ctx, "SELECT encode(key, 'hex') FROM effects WHERE class = 'idempotent' AND state = 'completed'")
	if err != nil {
		return err
	}
	recorded := map[string]bool{} // calls, of which one key is recorded
	keys := map[string]bool{}
	var key string
	_, err = pgx.ForEachRow(rows, []any{&key}, func() error {
		keys[key] = true
		recorded[w.applied[key]] = true
		return nil
	})
	maps.DeleteFunc(w.applied, func(key, what string) bool {
		return recorded[what] && !keys[key]
	})
	return err
}
