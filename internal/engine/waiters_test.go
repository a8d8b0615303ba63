package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// asked is a store that counts the questions of Waiters, and lets a test act on each answer.
type asked struct {
	engine.Ends
	mu     sync.Mutex
	looks  []int // number of jobs of each Ended
	reads  []int // of each Outcomes
	dead   []int // of each DeadLetters
	answer func(ids []journal.JobID, err error) error
}

func (a *asked) note(of *[]int, ids []journal.JobID, err error) error {
	a.mu.Lock()
	*of = append(*of, len(ids))
	answer := a.answer
	a.mu.Unlock()
	if answer != nil {
		return answer(ids, err)
	}
	return err
}

func (a *asked) Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error) {
	out, err := a.Ends.Ended(ctx, ids)
	return out, a.note(&a.looks, ids, err)
}

func (a *asked) Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error) {
	out, err := a.Ends.Outcomes(ctx, ids)
	return out, a.note(&a.reads, ids, err)
}

func (a *asked) DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error) {
	out, err := a.Ends.DeadLetters(ctx, f)
	return out, a.note(&a.dead, f.Jobs, err)
}

// parked is the number of questions about dead letters.
func (a *asked) parked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.dead)
}

// counts are the numbers of looks and of jobs that were read.
func (a *asked) counts() (looks, read int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.reads {
		read += n
	}
	return len(a.looks), read
}

// hall is Waiters over a store of jobs that nobody works on.
type hall struct {
	*engine.Waiters
	t     *testing.T
	store *memstore.Store
	asked *asked
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{t: t, store: memstore.New(memstore.Config{Space: "test", Now: func() int64 { return time.Now().UnixMicro() }})}
	h.asked = &asked{Ends: h.store}
	h.Waiters = engine.NewWaiters(engine.WaitersConfig{Store: h.asked})
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *hall) start(key string) journal.JobID {
	h.t.Helper()
	res, err := journaltest.Driven{Store: h.store}.Start(context.Background(), []store.Start{{
		Flow: journal.FlowRef{Name: "f", Version: "1"}, Trigger: "start", Key: key, Input: []byte(`{}`),
	}}, collation.Mode{})
	require.NoError(h.t, err)
	return res[0].Job
}

// quarantine ends the wait for a job in the shortest way.
func (h *hall) quarantine(id journal.JobID) {
	h.t.Helper()
	require.NoError(h.t, journaltest.Driven{Store: h.store}.Decide(context.Background(), store.Want{Job: id},
		func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			m := &collation.Message{Job: id, GUID: id.Start(), Kind: journal.MessageStart}
			return collation.Quarantine(l.States[id], m, collation.Mode{}, errors.New("a digit is wrong")), nil, nil
		}))
}

// waiting is one call of Wait.
type waiting struct {
	out  store.Outcome
	err  error
	done chan struct{}
}

func (h *hall) wait(ctx context.Context, id journal.JobID) *waiting {
	w := &waiting{done: make(chan struct{})}
	go func() {
		w.out, w.err = h.Wait(ctx, id, false)
		close(w.done)
	}()
	return w
}

func (w *waiting) over() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// W5, in every mode: a wait is told by the engine of its process, or by the bus, and needs no
// look of its own.
func TestW5WaitIsTold(t *testing.T) {
	t.Parallel()
	const jobs = 20
	for _, byBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("by the bus %v", byBus), func(t *testing.T) {
			each(t, func(t *testing.T, cfg engine.Config) {
				var runs atomic.Int64
				var w *engine.Waiters
				waiters := engine.WaitersConfig{Look: time.Hour}
				if !byBus {
					cfg.Ended = func(jobs []engine.Ended) { w.Over(jobs) }
				}
				r := start(t, cfg, membus.Config{}, nil, echo(&runs))
				if byBus {
					waiters.Listen = r.bus.Listen
				}
				a := &asked{Ends: r.store}
				waiters.Store = a
				w = engine.NewWaiters(waiters)
				defer w.Close()
				began := time.Now()
				var wg sync.WaitGroup
				for _, id := range r.begin(jobs, 2) {
					wg.Go(func() {
						o, err := w.Wait(context.Background(), id, false)
						stored, failed := r.store.Outcomes(context.Background(), []journal.JobID{id})
						if errors.Join(err, failed) != nil || o.State != journal.JobCompleted ||
							string(o.Output) != `{"last":1}` || !reflect.DeepEqual(o, stored[id]) {
							t.Errorf("%+v, %v; stored %+v, %v", o, err, stored[id], failed)
						}
					})
				}
				wg.Wait()
				require.Less(t, time.Since(began), time.Minute)
				looks, read := a.counts()
				require.Zero(t, looks)
				most := 2 * jobs // at first, and when it was told
				if !byBus && !cfg.Stepwise {
					most = jobs // the commit that ended the job has the outcome
				}
				require.LessOrEqual(t, read, most)
			})
		})
	}
}

// W5, in every mode: each way in which a job can end is told, not looked for: failed and
// interrupted as completed above.
func TestW5EveryEndIsTold(t *testing.T) {
	t.Parallel()
	for _, byBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("by the bus %v", byBus), func(t *testing.T) {
			each(t, func(t *testing.T, cfg engine.Config) {
				waiters := engine.WaitersConfig{Look: 1000 * time.Hour}
				var w *engine.Waiters
				if !byBus {
					cfg.Ended = func(jobs []engine.Ended) { w.Over(jobs) }
				}
				reg := workers.New()
				workers.HandleRaw(reg, "work", func(context.Context, json.RawMessage) (json.RawMessage, error) {
					time.Sleep(time.Second) // the bubble's clock
					return nil, workers.Fail(http.StatusPaymentRequired, "no money")
				})
				r := start(t, cfg, membus.Config{}, nil, reg)
				if byBus {
					waiters.Listen = r.bus.Listen
				}
				waiters.Store = r.store
				w = engine.NewWaiters(waiters)
				defer w.Close()
				r.deploy(`{flow: fails, version: "1", activities: {start: {type: trigger}, w: {type: worker, topic: work}}, transitions: {start: [w]}}`)
				r.deploy(`{flow: sleeps, version: "1", activities: {start: {type: trigger}, w: {type: hook, sleep: 100h}}, transitions: {start: [w]}}`)
				ids := map[journal.JobState]journal.JobID{
					journal.JobFailed: r.publish("fails", "f", `{}`), journal.JobInterrupted: r.publish("sleeps", "i", `{}`),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var all sync.WaitGroup
				for state, id := range ids {
					all.Go(func() {
						o, err := w.Wait(ctx, id, false)
						stored, failed := r.store.Outcomes(context.Background(), []journal.JobID{id})
						if errors.Join(err, failed) != nil || o.State != state || !reflect.DeepEqual(o, stored[id]) {
							t.Errorf("%+v, %v; stored %+v, %v", o, err, stored[id], failed)
						}
					})
				}
				time.Sleep(time.Minute)
				began := time.Now()
				r.interrupt(ids[journal.JobInterrupted], collation.InterruptOrder{Code: 410, Throw: true}, "op")
				all.Wait()
				require.Less(t, time.Since(began), time.Minute)
			})
		})
	}
}

// W5: a thousand waits cost one query per second, and none when they are gone.
func TestW5WaitersCostNoQuery(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 1000
		h := newHall(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		var all []*waiting
		for i := range n {
			all = append(all, h.wait(ctx, h.start(fmt.Sprint(i))))
		}
		time.Sleep(10*time.Second + engine.DefaultLook/2)
		looks, read := h.asked.counts()
		require.Equal(t, []int{10, n}, []int{looks, read})
		require.Equal(t, slices.Repeat([]int{n}, 10), h.asked.looks)
		gone := errors.New("gone")
		cancel(gone)
		for _, w := range all {
			<-w.done
			require.ErrorIs(t, w.err, gone)
		}
		time.Sleep(time.Hour)
		after, read := h.asked.counts()
		require.Equal(t, []int{looks, n}, []int{after, read})
	})
}

// W5: an end that nobody told is found at the next look, also of a quarantined job, and for
// every wait.
func TestW5LooksForWhatNobodyTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		ctx, cancel := context.WithCancel(context.Background())
		id := h.start("k")
		leaves, one, two, other := h.wait(ctx, id), h.wait(t.Context(), id), h.wait(t.Context(), id),
			h.wait(t.Context(), h.start("other"))
		require.False(t, one.over())
		cancel()
		require.True(t, leaves.over())
		require.ErrorIs(t, leaves.err, context.Canceled)
		h.quarantine(id)
		require.False(t, one.over())
		time.Sleep(engine.DefaultLook)
		for _, w := range []*waiting{one, two} {
			require.True(t, w.over())
			require.NoError(t, w.err)
			require.Equal(t, store.Outcome{Key: "k", State: journal.JobQuarantined}, w.out)
		}
		require.False(t, other.over())
	})
}

// A wait that registers and then looks misses nothing that is told during the look. A wait that
// is told too early goes on.
func TestW5ToldWhileLooking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		id := h.start("k")
		early := h.wait(t.Context(), id)
		require.False(t, early.over())
		h.Told([]journal.JobID{id, {1}})
		require.False(t, early.over())
		_, read := h.asked.counts()
		require.Equal(t, 2, read)

		second := h.start("second")
		h.asked.answer = func(ids []journal.JobID, err error) error {
			if slices.Contains(ids, second) && !h.over(second) { // after it was found open
				h.quarantine(second)
				h.Told([]journal.JobID{second})
			}
			return err
		}
		began := time.Now()
		w := h.wait(t.Context(), second)
		require.True(t, w.over())
		require.NoError(t, w.err)
		require.Zero(t, time.Since(began))
		require.False(t, early.over())
	})
}

// W5: a wait listens before it looks, so that it also hears of what another process tells during
// the look.
func TestW5ToldByAnotherWhileLooking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		h.Close()
		tell := func() {}
		h.Waiters = engine.NewWaiters(engine.WaitersConfig{
			Store: h.asked,
			Listen: func(_ [16]byte, told func()) (func(), error) {
				time.Sleep(time.Millisecond) // the bubble's clock: it takes its time
				tell = told
				return func() {}, nil
			},
		})
		id := h.start("k")
		h.asked.answer = func(_ []journal.JobID, err error) error {
			if !h.over(id) { // after it was found open
				h.quarantine(id)
				tell()
			}
			return err
		}
		w := h.wait(t.Context(), id)
		time.Sleep(2 * time.Millisecond)
		require.True(t, w.over())
	})
}

func (h *hall) over(id journal.JobID) bool {
	ended, err := h.store.Ended(context.Background(), []journal.JobID{id})
	require.NoError(h.t, err)
	return ended[id]
}

// A database that cannot be reached is waited for. Any other error belongs to the job that it
// is about.
func TestW5WaitAndTheStoresErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		fails := func(err error, of ...journal.JobID) {
			h.asked.mu.Lock()
			defer h.asked.mu.Unlock()
			h.asked.answer = func(ids []journal.JobID, was error) error {
				if len(of) == 0 || slices.ContainsFunc(ids, func(id journal.JobID) bool {
					return slices.Contains(of, id)
				}) {
					return err
				}
				return was
			}
		}
		fails(store.ErrUnavailable)
		one, two := h.start("one"), h.start("two")
		a, b, none := h.wait(t.Context(), one), h.wait(t.Context(), two), h.wait(t.Context(), journal.JobID{1})
		time.Sleep(10 * time.Second)
		require.False(t, a.over() || b.over() || none.over())
		fails(nil)
		time.Sleep(2 * engine.DefaultLook)
		require.True(t, none.over())
		require.ErrorIs(t, none.err, store.ErrNotFound)
		require.False(t, a.over() || b.over())

		corrupt := errors.New("it cannot be read")
		fails(corrupt, one)
		h.Told([]journal.JobID{one, two})
		require.True(t, a.over())
		require.ErrorIs(t, a.err, corrupt)
		require.False(t, b.over())
		h.quarantine(two)
		h.Told([]journal.JobID{two})
		require.True(t, b.over())
		require.NoError(t, b.err)

		fails(corrupt, one)
		c := h.wait(t.Context(), h.start("three"))
		require.False(t, c.over())
		fails(corrupt) // the look for all fails, too
		time.Sleep(engine.DefaultLook)
		require.True(t, c.over())
		require.ErrorIs(t, c.err, corrupt)
	})
}

// A wait that ends when its job is parked is told at the next look. Other waits for the job go
// on. All such waits together cost one more query per look.
func TestWaitUntilParked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		parks, free := h.start("parks"), h.start("free")
		ended := make(chan error, 3)
		for _, id := range []journal.JobID{parks, parks, free} {
			go func() {
				_, err := h.Wait(t.Context(), id, true)
				ended <- err
			}()
		}
		patient := h.wait(t.Context(), parks)
		time.Sleep(3*engine.DefaultLook + engine.DefaultLook/2)
		require.Equal(t, 3, h.asked.parked(), "one for all in each look")
		d := collation.DeadLetter{Job: parks, Kind: journal.MessageLeg1, Reason: "stuck", Message: "look"}
		require.NoError(t, journaltest.Driven{Store: h.store}.DeadLetter(t.Context(), d, nil))
		for range 2 {
			var parked *engine.ParkedError
			require.ErrorAs(t, <-ended, &parked)
			require.Equal(t, "look", parked.DeadLetters[0].Letter.Message)
		}
		require.Empty(t, ended)
		require.False(t, patient.over())
		h.quarantine(free)
		h.quarantine(parks)
		require.NoError(t, <-ended)
		time.Sleep(2 * engine.DefaultLook)
		require.True(t, patient.over())
	})
}

// slowDead is a store that answers slowly about dead letters.
type slowDead struct{ *asked }

func (s slowDead) DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error) {
	time.Sleep(time.Millisecond)
	return s.asked.DeadLetters(ctx, f)
}

// Many waits with one deadline ask together whether their jobs are parked.
func TestParkedIsAskedTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHall(t)
		h.Close()
		h.Waiters = engine.NewWaiters(engine.WaitersConfig{Store: slowDead{h.asked}})
		const many = 500
		parked := map[journal.JobID]bool{}
		var ids []journal.JobID
		for i := range many {
			id := h.start(fmt.Sprint("job-", i))
			ids = append(ids, id)
			if i%100 == 0 {
				parked[id] = true
				d := collation.DeadLetter{Job: id, Kind: journal.MessageLeg1, Reason: "stuck", Message: "look"}
				require.NoError(t, journaltest.Driven{Store: h.store}.DeadLetter(t.Context(), d, nil))
			}
		}
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				letters, err := h.Parked(t.Context(), id)
				if assert.NoError(t, err) && assert.Equal(t, parked[id], len(letters) == 1) && parked[id] {
					assert.Equal(t, id, letters[0].Letter.Job)
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, h.asked.parked(), 3, "the first alone, the others together")
		h.Close()
		_, err := h.Parked(t.Context(), ids[0])
		require.ErrorIs(t, err, engine.ErrClosed)
	})
}
