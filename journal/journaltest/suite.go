package journaltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Clock is implemented by stores whose clock the suite can move. For other stores the suite uses
// short spans and waits.
type Clock interface {
	// Advance moves the store's clock ahead by d.
	Advance(d time.Duration)
}

// Run tests the stores of open against the contract of journal/store. It calls open for each
// subtest to get an empty, migrated store, and closes that.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	groups := map[string]map[string]func(*bench){
		"Start": starts, "Load": loads, "Hot": hots, "Commit": commits, "Lawless": lawless, "Races": races, "Rows": rows,
		"Lease": leases, "Sessions": sessions, "Effects": effects, "Holds": holds, "Places": places, "Tx": txEffects, "Letters": letters, "Doubts": doubts, "Flows": flows, "Lists": lists, "Audit": audits,
		"Signals": signals, "Mailboxes": mailboxes, "Children": children, "Pauses": pauses,
		"Interrupts": interrupts, "Outcomes": outcomes, "Schedules": schedules, "Extras": extras, "Agreements": agreements, "Expiry": expiries, "Repairs": repairs,
	}
	for group, cases := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, run := range cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := open(t)
					t.Cleanup(s.Close)
					run(newBench(t, s))
				})
			}
		})
	}
}

// bench is one subtest: a store, and the flows deployed in it.
type bench struct {
	testing.TB
	s     Driven
	mode  collation.Mode
	flows map[string]*flow.Flow // by name and version
	live  func() store.Session  // a session that outlives the subtest
}

func newBench(t *testing.T, s store.Store) *bench {
	b := &bench{
		TB: t, s: Driven{s}, flows: map[string]*flow.Flow{},
		mode: collation.Mode{Resend: micros(time.Hour), Writer: "suite", Build: "test"},
	}
	b.live = sync.OnceValue(func() store.Session { return b.session("live", hour) })
	return b
}

// The flows of the suite.
const (
	// one: a trigger, a worker, an output.
	one = `
flow: one
version: "1"
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, input: {n: "${ start.output.n }"}, retry: {attempts: 3, backoff: 1s, jitter: 0}}
transitions:
  start: [work]
`
	// fork: two branches, one of them of two workers.
	fork = `
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
	// hasty: a worker that must answer almost at once.
	hasty = `
flow: hasty
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, within: 100ms, input: {}}
transitions:
  start: [work]
`
)

func micros(d time.Duration) collation.Micros { return collation.Micros(d.Microseconds()) }

// ctx returns the context of the subtest.
func (b *bench) ctx() context.Context { return b.Context() }

// deploy deploys a flow and makes it known to the driver.
func (b *bench) deploy(src string) *flow.Flow {
	b.Helper()
	f, err := flow.Parse("suite.yaml", []byte(src))
	require.NoError(b, err)
	_, err = b.s.Deploy(b.ctx(), ref(f), f.Canonical(), false)
	require.NoError(b, err)
	b.flows[f.Name()+" "+f.Version()] = f
	return f
}

func ref(f *flow.Flow) journal.FlowRef {
	return journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
}

// request returns a store.Start of the flow.
func request(f *flow.Flow, key, input string) store.Start {
	return store.Start{
		Flow: ref(f), Trigger: f.Trigger().Name, Key: key, Input: []byte(input),
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// start starts one job.
func (b *bench) start(f *flow.Flow, key string) journal.JobID {
	b.Helper()
	out, err := b.s.Start(b.ctx(), []store.Start{request(f, key, `{"n":7}`)}, b.mode)
	require.NoError(b, err)
	require.Len(b, out, 1)
	require.NoError(b, out[0].Err)
	return out[0].Job
}

// committer opens a committer for the subtest.
func (b *bench) committer() store.Committer { return b.opened(true) }

// hasty opens one that does not wait for locks of others, as the loops of engines do not.
func (b *bench) hasty() store.Committer { return b.opened(false) }

func (b *bench) opened(patient bool) store.Committer {
	b.Helper()
	c, err := b.s.Committer(b.ctx(), patient)
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c
}

// view reads a job.
func (b *bench) view(id journal.JobID) *store.JobView {
	b.Helper()
	v, err := b.s.Job(b.ctx(), id)
	require.NoError(b, err)
	return v
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

// span is how long something lasts in a case that depends on time.
func (b *bench) span() time.Duration {
	if _, ok := b.s.Store.(Clock); ok {
		return time.Minute
	}
	return 50 * time.Millisecond
}

// eventually lets the span pass on the store's clock, and waits until reached returns true.
func (b *bench) eventually(reached func() bool) {
	b.Helper()
	if clock, ok := b.s.Store.(Clock); ok {
		clock.Advance(b.span() + time.Millisecond)
		require.True(b, reached())
		return
	}
	require.Eventually(b, reached, 30*time.Second, 10*time.Millisecond)
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

// requireOneOf requires an error of one of several kinds.
func requireOneOf(t testing.TB, err error, kinds ...error) {
	t.Helper()
	for _, k := range kinds {
		if errors.Is(err, k) {
			return
		}
	}
	require.Failf(t, "wrong error", "%v is none of %v", err, kinds)
}
