package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/workers"
)

// tally counts what was done outside, by name, and says which calls fail.
type tally struct {
	mu    sync.Mutex
	done  map[string]int
	fails map[string]bool
}

func newTally(fails ...string) *tally {
	t := &tally{done: map[string]int{}, fails: map[string]bool{}}
	for _, f := range fails {
		t.fails[f] = true
	}
	return t
}

// do is one call outside.
func (t *tally) do(name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[name]++
	if t.fails[name] {
		return "", refused(name)
	}
	return fmt.Sprintf("%s %d", name, t.done[name]), nil
}

func (t *tally) mend(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fails, name)
}

func (t *tally) count() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]int{}
	for k, n := range t.done {
		all[k] = n
	}
	return all
}

// refused is an error that is recorded as a result.
func refused(what string) error {
	return &workers.Error{Code: 402, Class: "refused", Message: what + " was refused"}
}

// outside is a handler that makes one call outside, by an effect, for each name.
func (t *tally) outside(names ...string) func(context.Context, any) (map[string]string, error) {
	return func(ctx context.Context, _ any) (map[string]string, error) {
		out := map[string]string{}
		for _, name := range names {
			got, err := effects.Do(ctx, name, func(context.Context) (string, error) { return t.do(name) })
			if err != nil {
				return nil, workers.Fatal(err)
			}
			out[name] = got
		}
		return out, nil
	}
}

// proved verifies every job of the space, and what each took over from others.
func (s *space) proved() {
	s.t.Helper()
	st := below.Of(s.Runtime)
	for id, err := range st.AuditJobs(s.t.Context(), nil) {
		require.NoError(s.t, err)
		report, err := store.VerifyJob(s.t.Context(), st, id, nil, nil)
		require.NoError(s.t, err)
		require.False(s.t, report.Violated(), "job %s generation %d: %s", report.Header.Key, report.Header.Generation, report.First)
	}
}

// failed waits for the job's end.
func (s *space) failed(job quipu.Job) *quipu.JobError {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, err := s.Wait(ctx, job)
	failed, ok := errors.AsType[*quipu.JobError](err)
	require.True(s.t, ok, "%v", err)
	return failed
}

const orders = `
flow: orders
version: "1"
output: {paid: "${ charge.output.card }", ref: "${ reserve.output.stock }", told: "${ tell.output }", sizes: "${ pack.output }"}
activities:
  start: {type: trigger}
  reserve: {type: worker, topic: reserve, output: {stock: "${ reserve.output.stock + '!' }"}}
  pack: {type: worker, topic: pack, each: "${ start.output.boxes }", input: "${ item }", parallel: 2}
  note: {type: signal, topic: packed, key: "${ job.id }", payload: {n: 1}}
  charge: {type: worker, topic: charge}
  tell: {type: hook, input: "${ charge.output.card }"}
transitions: {start: [reserve], reserve: [pack], pack: [note], note: [charge], charge: [tell]}
`

// A failed job goes on in its next generation with what it has. Only the failed activity is done
// again, without the calls outside that are recorded as done.
func TestResume(t *testing.T) {
	t.Parallel()
	o := newTally("card", "box 3")
	reg := workers.New()
	workers.Handle(reg, "reserve", o.outside("stock"))
	workers.Handle(reg, "charge", o.outside("quote", "card", "receipt"))
	workers.Handle(reg, "pack", func(ctx context.Context, n int) (int, error) {
		_, err := o.do(fmt.Sprintf("box %d", n))
		return n * 10, workers.Fatal(err)
	})
	s := newSpaceOf(t, reg, orders)
	ctx := t.Context()
	job := s.begin("orders", "o-1", map[string]any{"boxes": []int{1, 2, 3, 4, 5}})
	require.Contains(t, s.failed(job).Error(), "box 3")

	_, err := s.Resume(ctx, quipu.Job{Key: "o-2"})
	require.ErrorIs(t, err, quipu.ErrNotFound)
	_, err = s.Resume(ctx, quipu.Job{Key: "o-1"}, quipu.From("nothing"))
	require.ErrorIs(t, err, quipu.ErrResume)
	require.ErrorContains(t, err, "it has reserve, pack, note, charge, tell")
	_, err = s.Resume(ctx, quipu.Job{Key: "o-1"}, quipu.From("start"))
	require.ErrorContains(t, err, "from its trigger on")

	o.mend("box 3")
	before := o.count()
	second := s.resumed("o-1", quipu.Who("ann"), quipu.Reason("the scale is mended"))
	require.NotEqual(t, job.ID, second.ID)
	require.Contains(t, s.failed(second).Error(), "card was refused")
	after := o.count()
	require.Equal(t, before["stock"], after["stock"])
	require.Equal(t, []int{1, 1, 2, 1, 1}, []int{after["box 1"], after["box 2"], after["box 3"], after["box 4"], after["box 5"]})
	s.proved()

	s.resumed("o-1", quipu.From("charge"))
	third, err := s.Find(ctx, "o-1")
	require.NoError(t, err)
	require.Contains(t, s.failed(third).Error(), "card was refused", "it is refused again")
	o.mend("card")
	fourth := s.resumed("o-1")
	s.output(fourth, `{"paid":"card 3","ref":"stock 1!","told":"card 3","sizes":[10,20,30,40,50]}`)
	require.Equal(t, map[string]int{
		"stock": 1, "box 1": 1, "box 2": 1, "box 3": 2, "box 4": 1, "box 5": 1, "quote": 1, "card": 3, "receipt": 1,
	}, o.count())
	_, err = s.Resume(ctx, quipu.Job{Key: "o-1"})
	require.ErrorContains(t, err, "it has completed")
	s.proved()

	info := s.info(quipu.Job{Key: "o-1"})
	require.Equal(t, int64(4), info.Generation)
	again, err := s.Start(ctx, "orders", "o-1", map[string]any{"boxes": []int{1, 2, 3, 4, 5}})
	require.NoError(t, err)
	require.True(t, again.Existing)
	require.Equal(t, fourth.ID, again.ID)
}

const hooked = `
flow: hooked
version: "1"
output: {trip: "${ book.output }", by: "${ asked.by }", said: "${ asked.output }", slept: "${ nap.by }", late: "${ never.code }"}
activities:
  start: {type: trigger}
  asked: {type: hook, signal: trip.asked, key: "${ job.id }", within: 1h}
  nap:   {type: hook, sleep: 1ms}
  never: {type: hook, signal: trip.never, key: "${ job.id }", within: 1ms}
  book:  {type: worker, topic: book}
transitions: {start: [asked], asked: [nap], nap: [never], never: [{to: book, on: error}]}
`

const trips = `
flow: trips
version: "1"
output: {trip: "${ book.output }"}
activities:
  start: {type: trigger}
  book: {type: worker, topic: book}
transitions: {start: [book]}
`

// A durable function goes on where it was. Its waits are resolved already, and recorded effects are not
// done again. Hooks that a signal, a timer or their bound has ended do not wait again, and keep what woke
// them.
func TestResumeFunction(t *testing.T) {
	t.Parallel()
	o := newTally("hotel")
	reg := workers.New()
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (string, error) {
		flight, errFlight := effects.Do(ctx, "flight", func(context.Context) (string, error) { return o.do("flight") })
		rested := workers.Sleep(ctx, "rest", 50*time.Millisecond)
		agreed, errAgreed := workers.Await[string](ctx, "trip.agreed", 0)
		hotel, errHotel := effects.Do(ctx, "hotel", func(context.Context) (string, error) { return o.do("hotel") })
		return flight + ", " + agreed + ", " + hotel, workers.Fatal(errors.Join(errFlight, rested, errAgreed, errHotel))
	})
	s := newSpaceOf(t, reg, hooked)
	job := s.begin("hooked", "h-1", map[string]any{})
	s.told("trip.asked", "h-1", "of ann")
	s.told("trip.agreed", "h-1", "by ann")
	require.Contains(t, s.failed(job).Error(), "hotel was refused")
	o.mend("hotel")
	s.output(s.resumed("h-1"), `{"trip":"flight 1, by ann, hotel 2","by":"signal","said":"of ann","slept":"timer","late":408}`)
	require.Equal(t, map[string]int{"flight": 1, "hotel": 2}, o.count())
	s.proved()
}

const families = `
flow: families
version: "1"
output: {a: "${ wait.output.got }", b: "${ call.output }"}
activities:
  start: {type: trigger}
  wait: {type: await, flow: child, id: "${ job.id + '/a' }", input: {topic: a}}
  call: {type: worker, topic: parent, input: "${ job.id + '/b' }"}
transitions: {start: [wait], wait: [call]}
`

const child = `
flow: child
version: "1"
output: {got: "${ work.output.did }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: work, input: "${ start.output.topic }"}
transitions: {start: [work]}
`

// A job whose child failed goes on once the child was resumed and has completed. That holds for
// an await and for a function.
func TestResumeChildren(t *testing.T) {
	t.Parallel()
	o := newTally("a", "b")
	reg := workers.New()
	workers.Handle(reg, "work", func(ctx context.Context, name string) (map[string]string, error) {
		got, err := o.do(name)
		return map[string]string{"did": got}, workers.Fatal(err)
	})
	workers.HandleDurable(reg, "parent", func(ctx context.Context, key string) (string, error) {
		out, err := workers.Child[map[string]string](ctx, "b", "child", map[string]string{"topic": "b"}, workers.ChildKey(key))
		return out["got"], workers.Fatal(err)
	})
	s := newSpaceOf(t, reg, child, families)
	ctx := t.Context()
	s.failed(s.begin("families", "f", map[string]any{}))
	resume := func(key, name string) quipu.Job {
		_, err := s.Resume(ctx, quipu.Job{Key: "f"})
		require.ErrorIs(t, err, quipu.ErrResume)
		require.ErrorContains(t, err, fmt.Sprintf("job %q, which failed: resume that first", key))
		o.mend(name)
		child := s.resumed(key)
		s.output(child, fmt.Sprintf(`{"got":"%s 2"}`, name))
		parent := s.resumed("f")
		return parent
	}
	s.failed(resume("f/a", "a"))
	s.proved()
	s.output(resume("f/b", "b"), `{"a":"a 2","b":"b 2"}`)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, o.count())
	s.proved()
}

// A function whose compensations have run begins anew, with other keys.
func TestResumeCompensated(t *testing.T) {
	t.Parallel()
	o := newTally("hotel")
	var keys sync.Map
	reg := workers.New()
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (string, error) {
		flight, err := effects.Do(ctx, "flight", func(ctx context.Context) (string, error) {
			keys.Store(effects.Key(ctx), true)
			return o.do("flight")
		})
		undo := workers.Compensate(ctx, "flight", func(context.Context) error { _, err := o.do("cancel"); return err })
		_, _, errFirst := workers.First(ctx, // which one it was is recorded, and decided anew when all is done anew
			func(ctx context.Context) (int, error) { return 0, workers.Sleep(ctx, "rest", time.Millisecond) },
			func(ctx context.Context) (int, error) { return 1, workers.Sleep(ctx, "week", 7*24*time.Hour) })
		hotel, errHotel := effects.Do(ctx, "hotel", func(context.Context) (string, error) { return o.do("hotel") })
		return flight + ", " + hotel, workers.Fatal(errors.Join(err, undo, errFirst, errHotel))
	})
	s := newSpaceOf(t, reg, trips)
	s.failed(s.begin("trips", "t-1", map[string]any{}))
	require.Equal(t, map[string]int{"flight": 1, "cancel": 1, "hotel": 1}, o.count())
	for n := 2; n < 4; n++ { // what it did anew is undone anew
		s.failed(s.resumed("t-1"))
		require.Equal(t, map[string]int{"flight": n, "cancel": n, "hotel": n}, o.count())
	}
	o.mend("hotel")
	s.output(s.resumed("t-1"), `{"trip":"flight 4, hotel 4"}`)
	require.Equal(t, map[string]int{"flight": 4, "cancel": 3, "hotel": 4}, o.count())
	n := 0
	keys.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 4, n)
	s.proved()
}

// The same where somebody else ended the function, so that a job of its own undid its work.
func TestResumeCompensatedElsewhere(t *testing.T) {
	t.Parallel()
	o := newTally()
	reg := workers.New()
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (string, error) {
		undo := workers.Compensate(ctx, "flight", func(context.Context) error { _, err := o.do("cancel"); return err })
		_, err := effects.Do(ctx, "flight", func(context.Context) (string, error) { return o.do("flight") })
		agreed, errAgreed := workers.Await[string](ctx, "trip.agreed", 0)
		return agreed, errors.Join(undo, err, errAgreed)
	})
	s := newSpaceOf(t, reg, trips)
	job := s.begin("trips", "t-1", map[string]any{})
	for n := 1; n < 4; n++ {
		s.waits(job)
		_, err := s.Interrupt(t.Context(), quipu.Job{Key: "t-1"})
		require.NoError(t, err)
		s.failed(job)
		require.Eventually(t, func() bool { return o.count()["cancel"] == n }, time.Minute, 10*time.Millisecond)
		require.Equal(t, map[string]int{"flight": n, "cancel": n}, o.count())
		job = s.resumed("t-1")
	}
	s.waits(job)
	s.told("trip.agreed", "t-1", "by ann")
	s.output(job, `{"trip":"by ann"}`)
	require.Equal(t, map[string]int{"flight": 4, "cancel": 3}, o.count())
	s.proved()
}

const wide = `
flow: wide
version: "1"
output: {before: "${ before.output }", all: "${ all.output.size() }"}
activities:
  start:  {type: trigger}
  before: {type: worker, topic: before}
  all:    {type: worker, topic: all, each: start.output.list, PARALLEL input: "${ item }", retry: {attempts: 1}}
transitions: {start: [before], before: [all]}
`

// J6: a job with a long list is resumed and forked as one with a short list is, from the start of
// the list, from an activity before it, and element by element.
func TestResumeOfWideLists(t *testing.T) {
	t.Parallel()
	for name, parallel := range map[string]string{"at once": "", "one by one": "parallel: 1,"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newTally("70")
			reg := workers.New()
			work := func(name string) (int, error) {
				_, err := o.do(name)
				return 1, workers.Fatal(err)
			}
			workers.Handle(reg, "before", func(context.Context, any) (int, error) { return work("before") })
			workers.Handle(reg, "all", func(_ context.Context, n int) (int, error) { return work(fmt.Sprint(n)) })
			s := newSpaceOf(t, reg, strings.Replace(wide, "PARALLEL", parallel, 1))
			list := make([]int, 70)
			for i := range list {
				list[i] = i + 1
			}
			job := s.begin("wide", "w", map[string]any{"list": list})
			require.Contains(t, s.failed(job).Error(), "70")
			fork := s.forked("w", s.results(job)["before"], "w-fork")
			require.Contains(t, s.failed(fork).Error(), "70", "it has no element, and asks for all")
			require.Contains(t, s.failed(s.resumed("w")).Error(), "70", "all but one have succeeded")
			require.Contains(t, s.failed(s.resumed("w", quipu.From("before"))).Error(), "70", "all are done again")
			require.Equal(t, []int{2, 3, 3, 4}, []int{o.count()["before"], o.count()["1"], o.count()["69"], o.count()["70"]})
			o.mend("70")
			s.output(s.resumed("w"), `{"all":70,"before":1}`)
			s.output(s.resumed("w-fork"), `{"all":70,"before":1}`)
			s.proved()
		})
	}
}
