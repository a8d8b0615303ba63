package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

// entries lists, by activity, the numbers of the main chain's entries that hold its results.
func (s *space) results(job quipu.Job) map[string]int64 {
	s.t.Helper()
	all := map[string]int64{}
	for e, err := range s.Journal(s.t.Context(), job) {
		require.NoError(s.t, err)
		if e.Chain.IsZero() && e.Ledger.String()[0] == '2' {
			all[e.Activity] = e.Seq
		}
	}
	return all
}

// A fork has the results that the job had at the entry, and does the rest with effects of its own.
// The job itself stays as it is, whatever its state.
func TestFork(t *testing.T) {
	t.Parallel()
	o := newTally("card", "box 3")
	reg := workers.New()
	workers.Handle(reg, "reserve", o.outside("stock"))
	workers.Handle(reg, "charge", o.outside("quote", "card"))
	workers.Handle(reg, "pack", func(ctx context.Context, n int) (int, error) { return n * 10, nil })
	s := newSpaceOf(t, reg, orders)
	ctx := t.Context()
	job := s.begin("orders", "o-1", map[string]any{"boxes": []int{1, 2}})
	require.Contains(t, s.failed(job).Error(), "card was refused")
	before := s.info(job)
	results := s.results(job)
	require.Equal(t, map[string]int{"stock": 1, "quote": 1, "card": 1}, o.count())

	_, err := s.Fork(ctx, quipu.Job{Key: "o-1"}, before.Entries+1, "o-1b")
	require.ErrorIs(t, err, quipu.ErrFork)
	require.ErrorContains(t, err, "its journal has the entries 1 to")
	_, err = s.Fork(ctx, quipu.Job{Key: "o-1"}, results["note"], "o-1b")
	require.ErrorContains(t, err, "charge at ,0^5 was under way at entry")
	_, err = s.Fork(ctx, quipu.Job{Key: "o-1"}, 1, "o-1")
	require.ErrorContains(t, err, "has the key \"o-1\" already")
	_, err = s.Fork(ctx, quipu.Job{Key: "o-1"}, 1, "")
	require.ErrorIs(t, err, quipu.ErrFork)
	_, err = s.Fork(ctx, quipu.Job{Key: "o-2"}, 1, "o-3")
	require.ErrorIs(t, err, quipu.ErrNotFound)

	o.mend("card")
	fork := s.forked("o-1", results["pack"], "o-1b", quipu.Who("ann"), quipu.Reason("what if the card were valid"))
	s.output(fork, `{"paid":"card 2","ref":"stock 1!","told":"card 2","sizes":[10,20]}`)
	require.Equal(t, map[string]int{"stock": 1, "quote": 2, "card": 2}, o.count(), "reserve was taken over, charge has keys of its own")
	s.proved()

	after := s.info(job)
	require.Equal(t, before.State, after.State)
	require.Equal(t, before.Entries+1, after.Entries)
	info := s.info(fork)
	require.Equal(t, job.ID, info.ForkOf)
	require.Zero(t, info.Resumes)
	_, err = s.Fork(ctx, quipu.Job{Key: "o-1b"}, 1, "o-1c")
	require.ErrorContains(t, err, "is a fork itself")

	s.output(s.forked("o-1", 1, "o-1d"), `{"paid":"card 3","ref":"stock 2!","told":"card 3","sizes":[10,20]}`)
	s.proved()

	s.output(s.resumed("o-1"), `{"paid":"card 4","ref":"stock 1!","told":"card 4","sizes":[10,20]}`)
	_, err = s.Fork(ctx, quipu.Job{Key: "o-1"}, 1, "o-1e")
	require.ErrorContains(t, err, "it resumes another job", "the key names that one now")
	first, err := s.Fork(ctx, job, 1, "o-1e")
	require.NoError(t, err, "the ID names the first one")
	s.output(first, `{"paid":"card 5","ref":"stock 3!","told":"card 5","sizes":[10,20]}`)
	s.proved()
}

// A fork of a job that is open takes over what a function has waited for, and waits for the rest
// itself. A fork that failed can be resumed, and still has what it takes over.
func TestForkOfAnOpenJob(t *testing.T) {
	t.Parallel()
	o := newTally("ship")
	reg := workers.New()
	workers.Handle(reg, "pack", o.outside("box"))
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (string, error) {
		if err := workers.Sleep(ctx, "rest", 20*time.Millisecond); err != nil {
			return "", err
		}
		return workers.Await[string](ctx, "trip.agreed", 0)
	})
	workers.Handle(reg, "ship", o.outside("ship"))
	s := newSpaceOf(t, reg, journeys)
	ctx := t.Context()
	job := s.begin("journeys", "j-1", map[string]any{"days": 3})
	s.waits(job)
	s.until("the function waits for its signal", func() bool {
		v, err := s.Job(ctx, job)
		return err == nil && len(v.Waits) == 1 && v.Waits[0].Topic == "trip.agreed"
	})
	info := s.info(job)
	fork := s.forked("j-1", info.Entries, "j-2")
	s.waits(fork)
	s.told("trip.agreed", "j-2", "by ann")
	require.Contains(t, s.failed(fork).Error(), "ship was refused")
	o.mend("ship")
	s.output(s.resumed("j-2"), `null`)
	require.Equal(t, map[string]int{"box": 1, "ship": 2}, o.count())

	s.told("trip.agreed", "j-1", "by bob")
	s.output(job, `null`)
	require.Equal(t, map[string]int{"box": 1, "ship": 3}, o.count())
	s.proved()
}

// A fork is an entry in the middle of a job that goes on meanwhile, and that goes on as it would.
func TestForkOfJobsThatRun(t *testing.T) {
	t.Parallel()
	o := newTally()
	reg := workers.New()
	workers.Handle(reg, "reserve", o.outside("stock"))
	workers.Handle(reg, "charge", o.outside("card"))
	workers.Handle(reg, "pack", func(ctx context.Context, n int) (int, error) { return n * 10, nil })
	s := newSpaceOf(t, reg, orders)
	const n = 20
	var all []quipu.Job
	for i := range n {
		key := fmt.Sprint("o-", i)
		all = append(all, s.begin("orders", key, map[string]any{"boxes": []int{1, 2, 3}}))
		for _, as := range []string{"/a", "/b"} {
			all = append(all, s.forked(key, 1, key+as))
		}
	}
	for _, job := range all {
		_, err := s.Wait(t.Context(), job)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{"stock": 3 * n, "card": 3 * n}, o.count(), "each did everything once")
	s.proved()
}

// Elements of a list that had ended are taken over, and passes of a loop; the others are done
// again. An entry at which a request was under way is refused only if it has recorded effects.
func TestForkAmongElements(t *testing.T) {
	t.Parallel()
	o := newTally()
	reg := workers.New()
	workers.Handle(reg, "pack", func(ctx context.Context, n int) (int, error) {
		_, err := o.do(fmt.Sprintf("box %d", n))
		return n * 10, err
	})
	s := newSpaceOf(t, reg, boxes)
	job := s.begin("boxes", "b-1", map[string]any{"boxes": []int{1, 2, 3, 4}})
	s.output(job, `{"sizes":[10,20,30,40]}`)
	var answers []int64
	for e, err := range s.Journal(t.Context(), job) {
		require.NoError(t, err)
		if e.Activity == "pack" && e.Response != nil {
			answers = append(answers, e.Seq)
		}
	}
	require.Len(t, answers, 4)
	for i, at := range answers {
		before := o.count()
		s.output(s.forked("b-1", at, fmt.Sprint("b-1/", i)), `{"sizes":[10,20,30,40]}`)
		again := 0
		for name, n := range o.count() {
			again += n - before[name]
		}
		require.Equal(t, 3-i, again, "entry %d has %d of the elements", at, i+1)
	}
	s.proved()
}

const boxes = `
flow: boxes
version: "1"
output: {sizes: "${ pack.output }"}
activities:
  start: {type: trigger}
  pack: {type: worker, topic: pack, each: "${ start.output.boxes }", input: "${ item }", parallel: 1}
transitions: {start: [pack]}
`
