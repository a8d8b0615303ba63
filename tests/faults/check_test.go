package faults

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/replay"
)

// looker reads the database of a cell: a connection, or a transaction.
type looker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// once is a connection whose queries are asked once: none is prepared.
type once struct{ *pgx.Conn }

func (o once) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return o.Conn.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

// facts is what the checks look at.
type facts struct {
	db      looker
	dsn     string // of the database
	space   string
	jobs    []string          // ids of the jobs of flow cell
	applied map[string]string // the books of the service outside: key → what for
	asked   int
}

// wrong is an invariant that does not hold, and how.
type wrong struct {
	id    string
	lines []string
}

func (w *wrong) Error() string {
	lines := w.lines
	if more := len(lines) - shownRows; more > 0 {
		lines = append(slices.Clone(lines[:shownRows]), fmt.Sprintf("and %d more", more))
	}
	return w.id + ":\n  " + strings.Join(lines, "\n  ")
}

// wrongIf gives the error of an invariant, nil where there is nothing to say.
func wrongIf(id string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return &wrong{id, lines}
}

// law is an invariant as a query, which selects a line of text for whatever breaks it.
type law struct{ id, query string }

// hold runs the query.
func (l law) hold(ctx context.Context, db looker, args ...any) error {
	lines, err := column(ctx, db, l.query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", l.id, err)
	}
	return wrongIf(l.id, lines)
}

// column is the one column of a query.
func column(ctx context.Context, db looker, sql string, args ...any) ([]string, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// check is an invariant of 6.1 that is looked at when all jobs of a cell have
// ended. Its error is a *wrong, or says why it could not look.
type check struct {
	id  string
	run func(ctx context.Context, w *facts) error
}

var checks = []check{
	{"I1", effectsOnce},
	{"I3", proved},
	{"I6", func(ctx context.Context, w *facts) error { return leftLaw.hold(ctx, w.db) }},
	{"I13", moneyKept},
	{"C9", outputs},
}

// connect opens a connection that finds the tables of the cell's space, and those
// of its bank. It is not led through the cell's wires.
func connect(ctx context.Context, dsn, space string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = "quipu_" + space + ", public"
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(ctx, strings.ReplaceAll(byJob(joined), "{schema}", "quipu_"+space)); err != nil {
		_ = db.Close(ctx)
		return nil, err
	}
	return db, nil
}

// byJob has the tables of the jobs' history seen with the job of each row, on one
// connection: they are keyed by a number of their own (W10), the laws speak of jobs.
func byJob(as string) string {
	var b strings.Builder
	for _, table := range []string{"entries", "receipts", "instances", "effects"} {
		fmt.Fprintf(&b, "CREATE OR REPLACE TEMPORARY VIEW %s AS "+as+";", table, "{schema}."+table)
	}
	return b.String()
}

// The forms of byJob: who looks joins, who changes rows needs a view that can be
// written to.
const (
	joined   = "SELECT x.*, j.id AS job FROM %s x LEFT JOIN jobs j ON j.n = x.n"
	writable = "SELECT x.*, (SELECT j.id FROM jobs j WHERE j.n = x.n) AS job FROM %s x"
)

// facts is the cell's, as it is now.
func (c *cell) world(db looker) *facts {
	w := &facts{db: db, dsn: c.dsn, space: c.space, jobs: slices.Sorted(maps.Keys(c.started))}
	var asked map[string]int
	w.applied, asked = c.outside.Books()
	for _, n := range asked {
		w.asked += n
	}
	if c.kind.loses {
		require.NoError(c.t, w.forget(c.t.Context()))
	}
	return w
}

// check holds the cell, whose jobs have all ended, to the invariants.
func (c *cell) check() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := connect(ctx, c.dsn, c.space)
	require.NoError(c.t, err)
	defer db.Close(context.Background())
	w := c.world(once{db})
	var broken []error
	for _, k := range checks {
		if err := k.run(ctx, w); err != nil {
			broken = append(broken, err)
		}
	}
	if len(broken) > 0 {
		require.FailNow(c.t, "after the cell", "%s", c.explain(ctx, db, broken))
	}
}

// flows are the definitions of the jobs that were verified, read once.
var flows = replay.NewFlows("")

// verified verifies the journals of jobs against their tables (I2–I7): each is proved by every
// check, at any time. Of jobs that have ended nothing is open. nil: all jobs.
func verified(ctx context.Context, st *postgres.Store, only []journal.JobID, ended bool) error {
	var lines []string
	for id, err := range st.AuditJobs(ctx, only) {
		if err != nil {
			return err
		}
		err = st.Audit(ctx, id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
			report, err := s.Verify(flows, entries)
			if err != nil {
				return err
			}
			for _, c := range report.Checks {
				if c.Status != replay.Proved {
					lines = append(lines,
						fmt.Sprintf("job %s (%s): %s (%s) is %s: %v %s", id, s.Job.Key, c.Check, c.Check.Title(), c.Status, c.Violation, c.Note))
				}
			}
			if ended && (report.OpenCount > 0 || len(s.Rows) > 0 || len(s.Waits) > 0) {
				lines = append(lines, fmt.Sprintf("job %s (%s) has open: %+v, rows %+v, waits %+v", id, s.Job.Key, report.Open, s.Rows, s.Waits))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return wrongIf("I3", lines)
}

// verifier reads the cell's journals.
func verifier(ctx context.Context, dsn, space string) (*postgres.Store, error) {
	return postgres.Open(ctx, postgres.Config{DSN: dsn, Space: space, MaxConns: 2, AnyDatabase: true})
}

// proved verifies every job, which has ended.
func proved(ctx context.Context, w *facts) error {
	st, err := verifier(ctx, w.dsn, w.space)
	if err != nil {
		return err
	}
	defer st.Close()
	return verified(ctx, st, nil, true)
}

const (
	shownRows  = 20      // of what breaks one invariant
	shownJobs  = 2       // journals that an explanation shows
	shownBytes = 6 << 10 // of what a process said last
)

var jobID = regexp.MustCompile(`job ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`)

// explain says what is wrong as a person needs it: the rows, the journals of
// their jobs, what the processes said last, and how to play the cell again.
func (c *cell) explain(ctx context.Context, db looker, broken []error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cell %s, where the victim stood at %+v:\n", c, c.at)
	var jobs []string
	for _, err := range broken {
		fmt.Fprintf(&b, "%v\n", err)
		for _, m := range jobID.FindAllStringSubmatch(err.Error(), -1) {
			if !slices.Contains(jobs, m[1]) && len(jobs) < shownJobs {
				jobs = append(jobs, m[1])
			}
		}
	}
	for _, id := range jobs {
		fmt.Fprintf(&b, "the journal of job %s:\n", id)
		lines, err := column(ctx, db, `SELECT format('  %s%s at %s %s', CASE WHEN chain <> '00000000-0000-0000-0000-000000000000' THEN chain::text || ' ' END, seq,
			to_char(to_timestamp((e ->> 't')::bigint / 1e6) AT TIME ZONE 'UTC', 'HH24:MI:SS.MS'),
			left((e - ARRAY['sp', 'ge', 't', 'v', 'tr', 'i'])::text, 900))
			FROM entries, LATERAL (SELECT convert_from(body, 'UTF8')::jsonb AS e) x WHERE job = $1::uuid ORDER BY chain, seq`, id)
		if err != nil {
			lines = append(lines, err.Error())
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	for i, p := range c.processes() {
		said := p.Log.String()
		fmt.Fprintf(&b, "process %d of %d said last:\n%s\n", i+1, len(c.processes()), said[max(0, len(said)-shownBytes):])
	}
	fmt.Fprintf(&b, "again: go test ./tests/faults -count=1 -run '^%s$'\n", strings.ReplaceAll(c.t.Name(), "/", "$/^"))
	return b.String()
}

// processes are all that the cell started, the victim first.
func (c *cell) processes() []*world.Process {
	switch {
	case c.storm != nil:
		return c.storm.Processes()
	case c.victim == nil:
		return nil
	}
	return append([]*world.Process{c.victim}, c.others...)
}
