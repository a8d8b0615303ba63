package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// handed is a request that was begun and handed over to a run of this process, with the run's
// lease.
func (w *warmth) handed(key string) (collation.Row, store.Lease) {
	w.t.Helper()
	own, err := w.st.OpenSession(w.t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(w.t, err)
	w.cfg.Local, w.cfg.Session = &slots{}, living(own.ID())
	row := w.begin(key)
	return row, store.Lease{
		Job: row.Job, Request: row.GUID, Turn: row.Turn, Holder: row.Holder, Session: row.Session, Fence: row.Fence,
	}
}

// record carries what runs record in one batch, and what of it is put off in the next. It returns
// the errors of the first calls.
func (w *warmth) record(effects ...*effect) (errs []error) {
	w.t.Helper()
	var calls []*call
	for _, x := range effects {
		one := worker{w.st, w.Committer}.call("effect", x, 0)
		one.done = make(chan struct{})
		calls = append(calls, one)
	}
	left := carried(calls...)
	for len(left) > 0 {
		b, err := w.transact(w.t.Context(), left, true)
		if err != nil {
			require.ErrorIs(w.t, err, store.ErrLost)
			continue
		}
		for _, d := range b.decisions {
			if d.fate == fateEnded {
				d.item.settle(w.loop, b, d.fate, d.err)
			}
		}
		left = b.became(fateLater)
	}
	for _, x := range calls {
		errs = append(errs, x.answer)
	}
	return errs
}

func pay(n int) journal.Effect {
	return journal.Effect{Key: journal.Digest{byte(n)}, Name: fmt.Sprint("pay", n), Class: store.ClassIdempotent}
}

func after(l store.Lease, e journal.Effect) *store.Lease {
	l.After = e.Key
	return &l
}

// W6: what a run records after its first effect needs no load, and neither does its answer.
func TestW6WhatARunRecordsNextIsNotLoaded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row, l := w.handed("k")
	require.Equal(t, []error{nil}, w.record(starting(&l, pay(1))))
	require.EqualValues(t, 1, w.loads.Load())
	for n := range 3 {
		errs := w.record(finish(&l, pay(n+1), false), starting(after(l, pay(n+1)), pay(n+2)))
		require.Equal(t, []error{nil, nil}, errs)
	}
	require.Equal(t, []error{nil}, w.record(finish(&l, pay(4), false)))
	b, err := w.transact(t.Context(), []item{response(&row)}, true)
	require.NoError(t, err)
	require.Equal(t, []journal.JobID{row.Job}, b.guessed.jobs)
	require.EqualValues(t, 1, w.loads.Load())
	rows, err := w.st.Effects(t.Context(), row.Job, row.GUID)
	require.NoError(t, err)
	require.Len(t, rows, 4)
}

// keptChains are what a kept chain does not show: what happens meanwhile, and what comes next.
var keptChains = map[string]struct {
	meanwhile func(w *warmth, l store.Lease)
	next      func(l store.Lease) *effect
	want      error
	result    string
}{
	"an outcome again": {
		next: func(l store.Lease) *effect {
			again := pay(1)
			again.Result = []byte(`2`)
			return finish(&l, again, false)
		},
		result: `1`,
	},
	"after an outcome that is not there": {
		next: func(l store.Lease) *effect { return starting(after(l, pay(7)), pay(2)) }, want: store.ErrBehind,
	},
	"after an outcome that is no longer kept": {
		meanwhile: func(w *warmth, l store.Lease) {
			require.Equal(w.t, []error{nil}, w.record(starting(&l, pay(3))))
			require.Equal(w.t, []error{nil}, w.record(finish(&l, pay(3), false)))
		},
		next: func(l store.Lease) *effect { return starting(after(l, pay(1)), pay(2)) },
	},
	"another run has the request": {
		meanwhile: func(w *warmth, l store.Lease) {
			require.NoError(w.t, w.st.HandBack(w.t.Context(), l))
			_, err := w.st.Lease(w.t.Context(), l.Job, l.Request, l.Turn, "there", l.Session)
			require.NoError(w.t, err)
		},
		next: func(l store.Lease) *effect { return starting(&l, pay(2)) }, want: store.ErrStale,
	},
	"it was answered": {
		meanwhile: func(w *warmth, l store.Lease) {
			r := &collation.Row{
				Job:      l.Job,
				GUID:     l.Request,
				Request:  collation.Request{Turn: l.Turn},
				Activity: "a",
				DAD:      ",0,0",
			}
			w.cache.drop(l.Job)
			_, err := w.transact(w.t.Context(), []item{response(r)}, true)
			require.NoError(w.t, err)
		},
		next: func(l store.Lease) *effect { return starting(&l, pay(2)) }, want: store.ErrStale,
	},
	"the effect was begun by another process": {
		meanwhile: func(w *warmth, l store.Lease) {
			kept := w.cache.takeChain(l.Key())
			require.Equal(w.t, []error{nil}, w.record(starting(&l, pay(2))))
			kept.Row.Rev++
			w.cache.putChain(l.Key(), kept, &collation.ChainWrite{})
		},
		next: func(l store.Lease) *effect { return starting(&l, pay(2)) },
	},
}

// W6: a verdict that writes nothing is decided on a load, and so is what rests on a chain that has
// changed since.
func TestW6WhatIsKeptOfAChainIsOnlyAGuess(t *testing.T) {
	t.Parallel()
	for name, c := range keptChains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarmth(t)
			_, l := w.handed("k")
			first := pay(1)
			first.Result = []byte(`1`)
			require.Equal(t, []error{nil}, w.record(starting(&l, first)))
			require.Equal(t, []error{nil}, w.record(finish(&l, first, false)))
			if c.meanwhile != nil {
				c.meanwhile(w, l)
			}
			loads := w.loads.Load()
			x := c.next(l)
			if errs := w.record(x); c.want != nil {
				require.ErrorIs(t, errs[0], c.want)
			} else {
				require.NoError(t, errs[0])
				require.Equal(t, c.result, string(x.out.Result))
			}
			require.Equal(t, loads+1, w.loads.Load())
		})
	}
}

// W6: a hot state gets a request's row as effects have left it, in a copy. A state that does not
// have the row as it was before is dropped: something else has changed it.
func TestW6AHotStateFollowsEffects(t *testing.T) {
	t.Parallel()
	job, request := journal.JobID{1}, journal.GUID{2}
	k := collation.RowKey{Job: job, GUID: request}
	moved := &collation.Row{
		GUID:    request,
		Job:     job,
		Rev:     6,
		Request: collation.Request{Fence: 2, Effects: journal.Head{Seq: 3}},
	}
	for name, c := range map[string]struct {
		rev  int64 // of the state's row
		rows int   // besides
		row  *collation.Row
		kept bool
	}{
		"as it was": {4, 0, moved, true}, "changed": {5, 0, moved, false}, "gone": {4, 0, nil, false}, "many rows": {4, maxMoved, moved, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := &collation.Row{
				GUID:        request,
				Job:         job,
				Rev:         c.rev,
				Publication: 7,
				Request:     collation.Request{Fence: 1},
			}
			st := &collation.State{
				Job: collation.Job{ID: job, State: journal.JobOpen}, Whole: true,
				Rows: map[journal.GUID]*collation.Row{request: before},
			}
			for n := range c.rows {
				st.Rows[journal.GUID{3, byte(n)}] = &collation.Row{Job: job, GUID: journal.GUID{3, byte(n)}}
			}
			h := newCache(1 << 20)
			h.put(st)
			h.move(k, c.row, 4)
			got := h.state(job)
			require.Equal(t, c.kept, got != nil)
			require.Equal(t, c.rev, before.Rev, "a kept state is replaced, not changed")
			if c.kept {
				require.Equal(t, &collation.Row{
					GUID:        request,
					Job:         job,
					Rev:         6,
					Publication: 7,
					Request:     collation.Request{Fence: 2, Effects: moved.Effects},
				}, got.Rows[request])
			}
		})
	}
}

// W3: an outcome that a run sends and does not wait for is answered once, also while the
// committer ends.
func TestW3EverySentOutcomeIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = w.Run(ctx) }()
	row := w.begin("k")
	l, err := w.st.Lease(t.Context(), row.Job, row.GUID, row.Turn, "w", own.ID())
	require.NoError(t, err)
	w.cfg.Session = living(own.ID())
	const outcomes = 300
	answers := make(chan error, 2*outcomes)
	for i := range outcomes {
		e := journal.Effect{
			Key: journal.Digest{byte(i), byte(i >> 8), 1}, Name: fmt.Sprint("now", i), Class: store.ClassPure,
		}
		w.Worker().SendOutcome(t.Context(), l, e, func(_ store.EffectRow, err error) { answers <- err })
		l.After = e.Key
		if i == outcomes/2 {
			require.NoError(t, <-answers)
			stop()
		}
	}
	for range outcomes - 1 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, ErrClosed)
		}
	}
	<-w.gone
	w.Worker().SendOutcome(t.Context(), l, journal.Effect{Name: "late", Class: store.ClassPure},
		func(_ store.EffectRow, err error) { answers <- err })
	require.ErrorIs(t, <-answers, ErrClosed)
	require.Empty(t, answers)
	rows, err := w.st.Effects(t.Context(), row.Job, row.GUID)
	require.NoError(t, err)
	for i := range rows {
		require.Equal(t, fmt.Sprint("now", i), rows[i].Name, "what is recorded is what came first")
	}
}

// W5: a process runs a job as long as a run of its own has one of the job's requests. A wait for
// such a job asks nothing before the next look.
func TestW5AWaitForAJobThatRunsHereAsksNothing(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row, _ := w.handed("here")
	require.True(t, w.Runs(row.Job))
	w.cfg.Local = nil
	require.False(t, w.Runs(w.begin("elsewhere").Job), "its request is nobody's yet")
	_, err := w.transact(t.Context(), []item{response(&row)}, true)
	require.NoError(t, err)
	require.False(t, w.Runs(row.Job), "its next request is nobody's")
	w.cfg.Session = nil
	require.False(t, w.Runs(row.Job))

	for here, asks := range map[bool]int{true: 0, false: 1} {
		waits := NewWaiters(WaitersConfig{Store: w.st, Look: time.Hour, Runs: func(journal.JobID) bool { return here }})
		end := make(chan ending, 1)
		waits.mu.Lock()
		waits.running = true // nobody reads what is asked
		waits.mu.Unlock()
		require.NoError(t, waits.enter(row.Job, end, false))
		require.Len(t, waits.asked, asks)
		waits.Over([]Ended{{Job: row.Job, How: store.Outcome{Key: "here", Ended: true}}})
		require.Equal(t, "here", (<-end).out.Key)
		waits.Close()
	}
}
