//go:build chaos

package e2e

import (
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
)

// check holds the round to what was asked for: outside, and in the tables that
// journal-verify does not count.
func (c *chaos) check(w wanted) {
	c.checkOutside(w)
	t := c.e.t
	conn, err := pgx.Connect(t.Context(), c.e.dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var schema string
	require.NoError(t, conn.QueryRow(t.Context(), "select schemaname from pg_tables where tablename = 'dispatches'").Scan(&schema))
	_, err = conn.Exec(t.Context(), "set search_path = "+pgx.Identifier{schema}.Sanitize())
	require.NoError(t, err)
	for _, q := range []struct {
		says, from string
		want       int
	}{
		{"I6: rows left", "dispatches", 0},
		{"I6: open dead letters", "dead_letters where state = 'open'", 0},
		{"dead letters that no fault explains", "dead_letters where activity not in ('guarded', 'notdone')", 0},
		{"I11: jobs not completed", "jobs where state <> 'completed'", 0},
		{"I9: jobs that were started", "jobs", len(w.jobs)},
		{"I1: unfinished effects that nobody parked", "effects where state = 'started' and class <> 'guarded'", 0},
	} {
		var n int
		require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from "+q.from).Scan(&n))
		assert.Equal(t, q.want, n, q.says)
	}
}

// checkOutside holds I1 from the receiver's side: what must be applied is, under
// one key; what is Guarded was asked for once at most (E5); and nothing else was.
func (c *chaos) checkOutside(w wanted) {
	t := c.e.t
	for _, what := range w.once {
		_, keys := c.r.askedFor(what)
		assert.Equal(t, 1, keys, "I1: keys of %s", what)
	}
	for _, what := range w.atMost {
		calls, _ := c.r.askedFor(what)
		assert.LessOrEqual(t, calls, 1, "E5: calls of %s", what)
	}
	known := map[string]bool{}
	for _, what := range append(w.once, w.atMost...) {
		known[what] = true
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	for _, what := range c.r.applied {
		assert.True(t, known[what], "%s was applied and nobody asked for it", what)
	}
}

// stranded says of each job that has not ended where it stands, and what the
// workers said last.
func (c *chaos) stranded(open map[string]quipu.Job) {
	if len(open) == 0 {
		return
	}
	t := c.e.t
	for key, job := range open {
		v, err := c.rt.Job(t.Context(), job)
		t.Logf("stranded: %s: %+v %v", key, v, err)
		for x, err := range c.rt.Journal(t.Context(), job) {
			if err != nil {
				t.Logf("  its journal: %v", err)
				break
			}
			t.Logf("  %s %d %s %s %s by %s at %d, trouble %v", x.Chain, x.Seq, x.Kind, x.Activity, x.DAD, x.Writer, x.Time, x.Trouble)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kids {
		t.Logf("worker %d, %s, said:\n%s", k.cmd.Process.Pid, k.config, k.log)
	}
}
