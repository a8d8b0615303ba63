package postgres

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// cases are the subtests of each group by their names, which say the rule.
var cases = map[string]map[string]func(*bench){}

// test adds a case to a group.
func test(group, name string, run func(*bench)) struct{} {
	if cases[group] == nil {
		cases[group] = map[string]func(*bench){}
	}
	cases[group][name] = run
	return struct{}{}
}

// contract runs the cases. It calls lend for each to get an empty, migrated space, and gives that back.
//
// A case drives the store as an engine does, with plans of collation.Incept and collation.Step over small flows.
// Handmade plans test a single part of a plan, or that the store refuses what no lawful engine asks for. A case moves
// the clock of its space, so nothing waits for time. Its name says the rule that it tests. At its end its jobs are
// audited: whole chains, right hashes, tables that equal what the entries say.
func contract(t *testing.T, lend func(t testing.TB) *space) {
	t.Helper()
	for group, list := range cases {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, run := range list {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := lend(t)
					t.Cleanup(s.Close)
					b := newBench(t, s)
					if run(b); !b.odd {
						b.audited()
					}
				})
			}
		})
	}
}

// bench is one subtest: a store, and the flows deployed in it.
type bench struct {
	testing.TB
	s     journaltest.Driven
	clock *space
	c     store.Committer // the case's own; helpers without another use it
	mode  collation.Mode
	odd   bool                  // the case writes by hand what is against the laws: it is not audited
	flows map[string]*flow.Flow // by name and version
	live  func() store.Session  // a session that outlives the subtest
	lists store.Lists
}

func newBench(t *testing.T, s *space) *bench {
	b := &bench{
		TB: t, s: journaltest.Driven{Store: s}, clock: s, lists: s.engine, flows: map[string]*flow.Flow{},
		mode: collation.Mode{Resend: micros(time.Hour), Writer: "suite", Build: "test"},
	}
	b.c = b.committer()
	b.live = sync.OnceValue(func() store.Session { return b.session("live", hour) })
	return b
}

// The flows of the suite.
const (
	// oneWorker: a trigger, a worker, an output.
	oneWorker = `
flow: one
version: "1"
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, input: {n: "${ start.output.n }"}, retry: {attempts: 3, backoff: 1s, jitter: 0}}
transitions:
  start: [work]
`
	// twoBranches: two branches, one of them of two workers.
	twoBranches = `
flow: fork
version: "1"
output: {left: "${ left.output }", right: "${ right.output }"}
activities:
  start: {type: trigger}
  left: {type: worker, topic: t.left, input: {n: "${ start.output.n }"}}
  right: {type: worker, topic: t.right, input: {n: "${ start.output.n }"}}
  next: {type: worker, topic: t.next, input: {from: "${ left.output }"}}
transitions:
  start: [left, right]
  left: [next]
`
)

func micros(d time.Duration) collation.Micros { return collation.Micros(d.Microseconds()) }

// ctx returns the context of the subtest.
func (b *bench) ctx() context.Context { return b.Context() }

// deploy deploys a flow and makes it known to the driver.
func (b *bench) deploy(src string) *flow.Flow {
	b.Helper()
	f := must(flow.Parse("suite.yaml", []byte(src)))(b)
	must(b.s.Deploy(b.ctx(), store.Deployment{Ref: collation.RefOf(f), Canonical: f.Canonical()}))(b)
	b.flows[f.Name()+" "+f.Version()] = f
	return f
}

// startOf is a request to begin a job of the flow.
func startOf(f *flow.Flow, key, input string) store.Start {
	return store.Start{
		Flow: collation.RefOf(f), Trigger: f.Trigger().Name, Key: key, Input: []byte(input),
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// start starts one job.
func (b *bench) start(f *flow.Flow, key string) journal.JobID {
	b.Helper()
	return b.begin(startOf(f, key, `{"n":7}`))[0]
}

// begin starts jobs, and returns their ids.
func (b *bench) begin(starts ...store.Start) []journal.JobID {
	b.Helper()
	out := must(b.s.Start(b.ctx(), starts, b.mode))(b)
	ids := make([]journal.JobID, len(out))
	for i := range out {
		require.NoError(b, out[i].Err)
		ids[i] = out[i].Job
	}
	return ids
}

// committer opens a committer for the subtest.
func (b *bench) committer() store.Committer { return b.opened(true) }

// hasty opens one that does not wait for locks of others, as the loops of engines do not.
func (b *bench) hasty() store.Committer { return b.opened(false) }

func (b *bench) opened(patient bool) store.Committer {
	b.Helper()
	c := must(b.s.Committer(b.ctx(), patient))(b)
	b.Cleanup(c.Close)
	return c
}

// locked loads with a committer, whose transaction stays open.
func (b *bench) locked(c store.Committer, wants ...store.Want) *store.Loaded {
	b.Helper()
	return must(c.Load(b.ctx(), wants, true))(b)
}

// look loads and rolls back.
func (b *bench) look(wants ...store.Want) *store.Loaded {
	b.Helper()
	l := b.locked(b.c, wants...)
	require.NoError(b, b.c.Rollback(b.ctx()))
	return l
}

// commit commits plans with the case's committer.
func (b *bench) commit(plans ...store.Chained) error { return b.c.Commit(b.ctx(), plans) }

// check is require.NoError for other goroutines.
func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Errorf("%v", err)
	}
}

// view reads a job.
func (b *bench) view(id journal.JobID) *store.JobView {
	b.Helper()
	return must(b.s.Job(b.ctx(), id))(b)
}

// row finds the one row of a kind at an activity.
func (b *bench) row(id journal.JobID, kind journal.MessageKind, activity string) collation.Row {
	b.Helper()
	var found []collation.Row
	for _, r := range b.view(id).Rows {
		if r.Kind == kind && r.Activity == activity {
			found = append(found, r)
		}
	}
	require.Len(b, found, 1, "rows of kind %s at %s", kind, activity)
	return found[0]
}

// request is the row of the one request of an activity.
func (b *bench) request(id journal.JobID, activity string) collation.Row {
	b.Helper()
	return b.row(id, journal.MessageRequest, activity)
}

// span is how long something lasts in a case that depends on time.
const lasting = time.Minute

// eventually lets the span pass, and waits until reached returns true.
func (b *bench) eventually(reached func() bool) {
	b.Helper()
	b.clock.Advance(lasting + time.Millisecond)
	b.waits(reached)
}

// waits waits for what the store does in its own time.
func (b *bench) waits(reached func() bool) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		require.True(b, time.Now().Before(end), "it does not come about")
	}
}

// together runs f n times at once, and returns when all calls have ended.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-gate
			f(i)
		})
	}
	close(gate)
	group.Wait()
}

// atOnce runs f n times at once, and counts what the calls return.
func atOnce[K comparable](n int, f func(i int) K) map[K]int {
	var mu sync.Mutex
	counts := map[K]int{}
	together(n, func(i int) {
		k := f(i)
		mu.Lock()
		defer mu.Unlock()
		counts[k]++
	})
	return counts
}

// won says that a call was the one that succeeded; the others must fail in one of the ways.
func (b *bench) won(err error, others ...error) bool {
	if err != nil && !slices.ContainsFunc(others, func(k error) bool { return errors.Is(err, k) }) {
		b.Errorf("%v is none of %v", err, others)
	}
	return err == nil
}

// refuses requires that a plan against the laws was refused; by which error is not part of the
// contract.
func (b *bench) refuses(err error, why ...any) {
	b.Helper()
	require.Error(b, err, why...)
	requireOneOf(b, err, store.ErrLost, store.ErrRejected)
}

// requireOneOf requires an error of one of several kinds.
func requireOneOf(t testing.TB, err error, kinds ...error) {
	t.Helper()
	is := func(kind error) bool { return errors.Is(err, kind) }
	require.True(t, slices.ContainsFunc(kinds, is), "%v is none of %v", err, kinds)
}

// byHand are the checks that handmade plans fail: they name rows, waits and digits of no flow.
var byHand = []replay.Check{replay.V4, replay.V6, replay.V10, replay.V11, replay.V13, replay.V16}

// audit reads jobs as a verifier does and compares tables with entries: whole chains, right
// hashes, digits, semaphore and rows as the entries moved them (J1, J8, J9).
func (b *bench) audit(ids ...journal.JobID) {
	b.Helper()
	for _, id := range ids {
		hand := slices.ContainsFunc(b.chain(id, journal.MainChain), func(e *journal.Entry) bool {
			return e.Operator != nil && e.Operator.Action == "suite"
		})
		err := b.s.Audit(b.ctx(), id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
			b.reads(s)
			report, err := s.Verify(nil, records)
			for i := 0; err == nil && i < len(report.Checks); i++ {
				x := &report.Checks[i]
				require.True(b, x.Status != replay.Violated || hand && slices.Contains(byHand, x.Check), "%v", x.Violation)
			}
			return err
		})
		require.NoError(b, err)
	}
}

// reads requires that what is stored of a job is what its readers show.
func (b *bench) reads(s *store.Stored) {
	b.Helper()
	v := b.view(s.Job.ID)
	if v.State == journal.JobExpired {
		return // requireTombstone compares more
	}
	require.Equal(b, v.Job, s.Job)
	for _, i := range v.Instances {
		require.Equal(b, i.Instance, s.Instances[i.Key])
	}
	for _, r := range s.Rows {
		require.Contains(b, v.Rows, r)
	}
	require.Len(b, s.Effects, len(must(b.s.JobEffects(b.ctx(), s.Job.ID))(b)))
}

// maxAudited bounds how many jobs of a case are audited at its end.
const maxAudited = 12

// audited audits the jobs of a case, some of many.
func (b *bench) audited() {
	b.Helper()
	ids := b.all(nil)
	b.audit(ids[:min(len(ids), maxAudited)]...)
}

// all lists the ids of all jobs, or of the given ones.
func (b *bench) all(only []journal.JobID) (ids []journal.JobID) {
	b.Helper()
	for id, err := range b.s.AuditJobs(b.ctx(), only) {
		require.NoError(b, err)
		ids = append(ids, id)
	}
	return ids
}

// chain decodes the entries of one chain.
func (b *bench) chain(id journal.JobID, chain journal.GUID) []*journal.Entry {
	b.Helper()
	var out []*journal.Entry
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for r, err := range records {
			if err != nil {
				return err
			}
			if r.Chain == chain {
				e, err := journal.Decode(r)
				require.NoError(b, err)
				out = append(out, e)
			}
		}
		return nil
	})
	require.NoError(b, err)
	return out
}

var _ = test("Audit", "jobs come in the order of their ids", func(b *bench) {
	require.Empty(b, b.all(nil))
	ids := b.jobs(40)
	byID := func(x, y journal.JobID) int { return bytes.Compare(x[:], y[:]) }
	some := []journal.JobID{ids[5], ids[1], {1}, ids[9]}
	want := slices.SortedFunc(slices.Values([]journal.JobID{ids[5], ids[1], ids[9]}), byID)
	require.Equal(b, want, b.all(some))
	slices.SortFunc(ids, byID)
	require.Equal(b, ids, b.all(nil))
	for id, err := range b.s.AuditJobs(b.ctx(), nil) { // a reader may stop
		require.NoError(b, err)
		require.Equal(b, ids[0], id)
		break
	}
})

var _ = test("Audit", "the visitor's error is returned", func(b *bench) {
	id := b.jobs(1)[0]
	mine := errors.New("seen enough")
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for range records {
			break
		}
		return mine
	})
	require.ErrorIs(b, err, mine)
})
