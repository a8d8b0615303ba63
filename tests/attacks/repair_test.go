package attacks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/workers"
)

const wide = `
flow: wide
version: "1"
output: {pay: "${ pay.output }", asked: "${ ask.output }", trip: "${ book.output }", many: "${ many.output }"}
activities:
  start: {type: trigger}
  first: {type: worker, topic: first, input: {n: "${ start.output.n }"}}
  pay:   {type: worker, topic: pay, input: {n: "${ start.output.n }", after: "${ first.output }"}}
  ask:   {type: hook, signal: asked, key: "${ start.output.n }", sleep: 1h}
  book:  {type: worker, topic: book}
  many:  {type: worker, topic: many, each: "${ [1, 2, 3] }", parallel: 2, input: {n: "${ item }"}}
transitions:
  start: [first]
  first: [pay, ask, book, many]
`

// victims are jobs that have rows of each kind. Their payments and lists wait for the test.
type victims struct {
	*target
	rt        *quipu.Runtime
	conn      *pgx.Conn
	jobs      []quipu.Job
	pay, many chan struct{}
}

func newVictims(t *testing.T, n int) *victims {
	t.Helper()
	v := &victims{target: newTarget(t), pay: make(chan struct{}), many: make(chan struct{})}
	v.rt = v.open(v.registry())
	v.Deploy(v.rt, wide)
	v.Run(v.rt)
	v.conn = v.admin()
	for i := range n {
		job, err := v.rt.Start(t.Context(), "wide", key(i), map[string]any{"n": key(i)})
		require.NoError(t, err)
		v.jobs = append(v.jobs, job)
	}
	v.until(func() bool {
		return v.count("waits") == 2*n && v.count("effects where state = 'completed'") == n && v.count("resolved_waits") == n &&
			v.count("dispatches where kind = 'request'") == 5*n
	})
	return v
}

func key(i int) string { return fmt.Sprint("w-", i) }

func (v *victims) registry() *workers.Registry {
	reg := workers.New()
	until := func(ctx context.Context, open chan struct{}) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	workers.Handle(reg, "first", func(context.Context, any) (string, error) { return "one", nil })
	var ran sync.Map // payments that have run before: their second run waits as long as the lists
	workers.Handle(reg, "pay", func(ctx context.Context, in struct{ N string }) (string, error) {
		paid, err := effects.Do(ctx, "charge", func(context.Context) (string, error) { return "paid", nil })
		if err != nil {
			return "", err
		}
		if _, again := ran.LoadOrStore(in.N, true); again {
			return paid, until(ctx, v.many)
		}
		return paid, until(ctx, v.pay)
	}, workers.Concurrency(50))
	workers.Handle(reg, "many", func(ctx context.Context, _ any) (string, error) {
		return "m", until(ctx, v.many)
	}, workers.Concurrency(100))
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (string, error) {
		if err := workers.Sleep(ctx, "rest", 10*time.Millisecond); err != nil {
			return "", err
		}
		return workers.Await[string](ctx, "agreed", time.Hour)
	})
	return reg
}

func (v *victims) count(from string) int { return v.target.count(v.conn, from) }

// quarantine lets the jobs meet a ledger that no lawful history leads to. Then nobody runs them.
func (v *victims) quarantine() {
	v.t.Helper()
	v.sql("update instances set ledger = 1000000000000 where activity = 'pay'")
	close(v.pay)
	v.until(func() bool { return v.count("jobs where state = 'quarantined'") == len(v.jobs) })
}

// volatile are columns that the journal does not tell: times, publications, leases, fences.
var volatile = []string{
	"next_at", "publication", "published_at", "turn_sent", "runs", "holder", "session", "fence", "rev", "until", "since", "within_at", "turn",
}

// rows are all rows of a table for a job, without what the journal does not tell. Turns of rows
// are told, those of effects that have ended are not.
func (v *victims) rows(table string, job quipu.Job) []string {
	v.t.Helper()
	by := "n = (select n from jobs where id = $1)"
	if table == "dispatches" || table == "waits" {
		by = "job = $1"
	}
	not := slices.Clone(volatile)
	if table != "effects" {
		not = not[:len(not)-1]
	}
	rows, err := v.conn.Query(v.t.Context(), "select (to_jsonb(x) - $2::text[])::text from "+table+" x where "+by+" order by 1", job.ID.String(), not)
	require.NoError(v.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(v.t, err)
	return all
}

var tables = []string{"instances", "receipts", "dispatches", "waits", "effects", "resolved_waits"}

func (v *victims) all(job quipu.Job) string {
	var out []string
	for _, name := range tables {
		out = append(out, v.rows(name, job)...)
	}
	return strings.Join(out, "\n")
}

func (v *victims) fsck(job quipu.Job) quipu.Findings {
	v.t.Helper()
	f, err := v.rt.Operator().Fsck(v.t.Context(), job.ID)
	require.NoError(v.t, err)
	return f
}

// proved verifies the journal of a job and its tables.
func (v *victims) proved(job quipu.Job) {
	v.t.Helper()
	report, err := store.VerifyJob(v.t.Context(), below.Of(v.rt), job.ID, nil, nil)
	require.NoError(v.t, err)
	require.Nil(v.t, report.First)
}

// ends signals what a job waits for, and waits for its end.
func (v *victims) ends(job quipu.Job) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	for _, topic := range []string{"asked", "agreed"} {
		_, err := v.rt.Signal(ctx, topic, job.Key, "yes")
		require.NoError(v.t, err)
	}
	out, err := v.rt.Wait(ctx, job)
	require.NoError(v.t, err, job.Key)
	require.JSONEq(v.t, `{"pay":"paid","asked":"yes","trip":"yes","many":["m","m","m"]}`, string(out))
	v.proved(job)
}

// damages are what somebody with the tables' rights does to each kind of row. JOB is the job's
// id, N its number.
var damages = []struct{ table, do string }{
	{"jobs", "update jobs set semaphore = 99 where id = JOB"},
	{"jobs", "update jobs set head_hash = sha256('x') where id = JOB"},
	{"instances", "update instances set open = 9 where activity = 'many' and n = N"},
	{"instances", "update instances set ledger = 1000000000000 where activity = 'first' and n = N"},
	{"instances", "delete from instances where activity in ('ask', 'first') and n = N"},
	{"instances", "delete from instances where activity = 'many' and n = N"},
	{"instances", "insert into instances (n, activity, dad, dad_text, ledger) values (N, 'pay', '00000000-0000-8000-8000-000000000001', ',7', 1000000000000)"},
	{"receipts", "insert into receipts values (N, '00000000-0000-8000-8000-000000000001', 0, 'stale', 1)"},
	{"dispatches", "update dispatches set turn = 7 where topic = 'pay' and job = JOB"},
	{"dispatches", "update dispatches set body = '\"stolen\"' where topic = 'pay' and job = JOB"},
	{"dispatches", "update dispatches set held = 'stuck', attempt = 5 where topic = 'many' and element = 1 and job = JOB"},
	{"dispatches", "update dispatches set pauses = null where topic = 'book' and job = JOB"},
	{"dispatches", "delete from dispatches where topic = 'pay' and job = JOB"},
	{"dispatches", "delete from dispatches where topic = 'many' and job = JOB"},
	{"dispatches", "delete from dispatches where topic = 'book' and job = JOB"},
	{"dispatches", "delete from dispatches where kind = 'wakeup' and job = JOB"},
	{"dispatches", "update dispatches set guid = '00000000-0000-8000-8000-000000000002' where topic = 'book' and job = JOB"},
	{"waits", "update waits set topic = 'other', mailbox = '00000000-0000-8000-8000-000000000002' where topic = 'asked' and job = JOB"},
	{"waits", "update waits set key = 'x' || repeat('é', 150) where topic = 'asked' and job = JOB"},
	{"waits", "delete from waits where job = JOB"},
	{"effects", "update effects set result = '\"refunded\"' where n = N"},
	{"effects", "delete from effects where n = N"},
	{"resolved_waits", "update resolved_waits set name = 'other' where n = N"},
	{"resolved_waits", "delete from resolved_waits where n = N"},
}

// TestRowsOfAJobAreChanged: somebody changes, removes and adds rows of each kind. Fsck names
// them, Repair restores them digit for digit from the journal, with an entry that holds the
// difference, and the job ends (S11).
func TestRowsOfAJobAreChanged(t *testing.T) {
	t.Parallel()
	v := newVictims(t, len(damages))
	lawful := map[string]string{}
	for _, job := range v.jobs {
		lawful[job.Key] = v.all(job)
	}
	v.quarantine()
	for i, d := range damages {
		job := v.jobs[i]
		v.sql(strings.NewReplacer("JOB", "'"+job.ID.String()+"'", "N", "(select n from jobs where id = '"+job.ID.String()+"')").Replace(d.do))
		f := v.fsck(job)
		require.Empty(t, f.Broken, d.do)
		named := false
		for _, x := range f.Differences {
			named = named || x.Table == d.table && !strings.HasPrefix(x.Row, "pay ,0,0,0")
			require.Empty(t, x.Left, "%s: %+v", d.do, x)
		}
		require.True(t, named, "%s: %+v", d.do, f.Differences)
		repaired, err := v.rt.Operator().Repair(t.Context(), job.ID, "ann", "the disk was replaced")
		require.NoError(t, err, d.do)
		require.Equal(t, f.Differences, repaired.Differences)
		require.Empty(t, v.fsck(job).Differences, d.do)
		require.Equal(t, lawful[job.Key], v.all(job), d.do)
		v.proved(job)
	}
	close(v.many)
	for _, job := range v.jobs {
		v.ends(job)
	}
}

// TestAnEntryOfAJobIsChanged: who changes an entry, or takes one away, has changed the authority.
// Nothing is rebuilt from that: the job stays quarantined, and fsck says so (S11).
func TestAnEntryOfAJobIsChanged(t *testing.T) {
	t.Parallel()
	forgeries := []string{
		"update entries set body = replace(convert_from(body, 'UTF8'), '\"one\"', '\"two\"')::bytea where seq = 3 and chain = '00000000-0000-0000-0000-000000000000' and n = @",
		"delete from entries where seq = 2 and chain = '00000000-0000-0000-0000-000000000000' and n = @",
		"delete from entries where seq = 2 and chain <> '00000000-0000-0000-0000-000000000000' and n = @",
	}
	v := newVictims(t, len(forgeries))
	v.quarantine()
	for i, forged := range forgeries {
		job := v.jobs[i]
		before := v.all(job)
		v.sql(strings.ReplaceAll(forged, "@", "(select n from jobs where id = '"+job.ID.String()+"')"))
		require.NotEmpty(t, v.fsck(job).Broken, forged)
		_, err := v.rt.Operator().Repair(t.Context(), job.ID, "ann", "hope")
		require.ErrorIs(t, err, quipu.ErrRepair)
		require.ErrorContains(t, err, "its journal breaks a law")
		require.Equal(t, before, v.all(job))
	}
	require.Equal(t, len(forgeries), v.count("jobs where state = 'quarantined'"))
}

// TestARequestAndItsFlowAreChanged: a row that only a changed definition could give back is not
// rebuilt from it. The definition is named, and nothing is written (S10, S11).
func TestARequestAndItsFlowAreChanged(t *testing.T) {
	t.Parallel()
	v := newVictims(t, 1)
	job := v.jobs[0]
	v.quarantine()
	v.sql("delete from dispatches where topic = 'pay'; update flows set definition = replace(convert_from(definition, 'UTF8'), '.output.n', '.output.m')::bytea")
	before := v.all(job)
	f, err := v.rt.Operator().Repair(t.Context(), job.ID, "ann", "hope")
	require.ErrorIs(t, err, quipu.ErrRepair)
	require.ErrorContains(t, err, "from a backup")
	require.Contains(t, f.Broken, "the definition of flow")
	require.NotEmpty(t, f.Differences)
	for _, d := range f.Differences {
		require.NotEmpty(t, d.Left, d)
	}
	require.Equal(t, before, v.all(job))
}
