//go:build chaos

package e2e

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
)

// check holds the round to what was asked for: outside, and in the tables that
// journal-verify does not count.
func (c *chaos) check(w wanted) {
	c.checkOutside(w)
	t := c.e.t
	conn := c.tables()
	for _, q := range []struct {
		says, from string
		want       int
	}{
		{"I6: rows left", "dispatches where kind <> 'signal'", 0},
		{"1.11: signals kept", "dispatches where kind = 'signal'", 0},
		{"I6: waits left", "waits", 0},
		{"I6: open dead letters", "dead_letters where state = 'open'", 0},
		{"dead letters that no fault explains", "dead_letters where activity not in ('guarded', 'notdone')", 0},
		{"I11: jobs not ended", "jobs where state in ('open', 'quarantined')", 0},
		{"I4: closed jobs with obligations", "jobs where semaphore <> 0", 0},
		{"I5: closed jobs without completion tasks", "jobs where tasks_seq is null and state <> 'expired'", 0},
		{"I9: jobs that were started", "jobs where parent_job is null", len(w.jobs)},
		{"I1: unfinished effects that nobody parked", "effects f where state = 'started' and class not in ('guarded', 'undo') and position not like '%.%' " +
			"and (select state from jobs j where j.n = f.n) = 'completed'", 0},
	} {
		var n int
		require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from "+q.from).Scan(&n))
		assert.Equal(t, q.want, n, q.says)
	}
}

// tables is a connection to the tables of the space.
func (c *chaos) tables() *pgx.Conn {
	t := c.e.t
	conn := c.e.connect()
	_, err := conn.Exec(t.Context(), "set search_path = quipu_"+c.e.space)
	require.NoError(t, err)
	return conn
}

// alone waits until the children that nobody awaits any more have ended, too
// (I11), and what came too late has its verdict.
func (c *chaos) alone() {
	t := c.e.t
	conn := c.tables()
	var left []string
	for until := time.Now().Add(patience); time.Now().Before(until) && t.Context().Err() == nil; pause(t.Context(), chaosLook) {
		rows, err := conn.Query(t.Context(), `
			select format('job %s %s %s', key, id, state) from jobs where state = 'open'
			union all select format('row %s of %s %s%s held %s due in %s', kind, job, activity, dad, held, next_at - micros())
				from dispatches where kind <> 'signal'`)
		require.NoError(t, err)
		left, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		if len(left) == 0 {
			return
		}
	}
	for i, l := range left {
		if f := strings.Fields(l); i < 5 && f[0] == "job" {
			if job, err := c.rt.Find(t.Context(), f[1]); err == nil {
				c.stranded(map[string]quipu.Job{job.Key: job})
			}
		}
	}
	t.Errorf("I11, I6: left %s after the faults:\n%s", patience, strings.Join(left, "\n"))
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
	for _, what := range slices.Concat(w.once, w.atMost) {
		known[what] = true
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	for _, what := range c.r.applied {
		assert.True(t, known[what], "%s was applied and nobody asked for it", what)
	}
}

// stranded says of each job that has not ended where it stands, and once what the
// workers said and did last.
func (c *chaos) stranded(open map[string]quipu.Job) {
	if len(open) == 0 {
		return
	}
	t := c.e.t
	for key, job := range open {
		v, err := below.Of(c.rt).Job(t.Context(), job.ID)
		t.Logf("stranded: %s: %+v %v", key, v, err)
		for x, err := range c.rt.Journal(t.Context(), job) {
			if err != nil {
				t.Logf("  its journal: %v", err)
				break
			}
			t.Logf("  %s %d %s %s %s by %s at %d, trouble %v", x.Chain, x.Seq, x.Kind, x.Activity, x.DAD, x.Writer, x.Time, x.Trouble)
		}
	}
	c.dumped.Do(c.dump)
}
