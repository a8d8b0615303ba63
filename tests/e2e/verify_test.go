package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, verifiedHandlers) }

// verifiedHandlers make a Guarded call whose verifier asks the books of the one
// that was called.
func verifiedHandlers(reg *workers.Registry, receiver string) {
	workers.Handle(reg, "verified", func(ctx context.Context, in order) (map[string]string, error) {
		return effects.Do(ctx, "verified", func(ctx context.Context) (map[string]string, error) {
			return call(ctx, receiver, effects.Key(ctx), "verified "+in.ID)
		})
	})
	workers.Verify(reg, "verified", effects.VerifierFunc(func(ctx context.Context, q effects.Question) (a effects.Answer, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, receiver+"/books?key="+url.QueryEscape(q.Key), nil)
		if err != nil {
			return a, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return a, err
		}
		defer resp.Body.Close()
		return a, json.NewDecoder(resp.Body).Decode(&a)
	}), effects.Human)
}

// books are a receiver that can be asked what it did.
type books struct {
	*receiver
	front *httptest.Server
	says  map[string]effects.Answer // by what was asked for

	mu    sync.Mutex
	asked map[string][]string // keys, by what was asked for
}

func newBooks(t *testing.T, says map[string]effects.Answer) *books {
	b := &books{receiver: newReceiver(t), says: says, asked: map[string][]string{}}
	b.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet {
			b.serve(w, q)
			return
		}
		key := q.URL.Query().Get("key")
		b.receiver.mu.Lock()
		what := b.applied[key]
		b.receiver.mu.Unlock()
		b.mu.Lock()
		b.asked[what] = append(b.asked[what], key)
		b.mu.Unlock()
		_ = json.NewEncoder(w).Encode(b.says[what])
	}))
	t.Cleanup(b.front.Close)
	return b
}

// forget ends a hold: calls for what are answered from now on, under other keys, too.
func (b *books) forget(what string, h *hold) {
	b.receiver.mu.Lock()
	delete(b.holds, what)
	b.receiver.mu.Unlock()
	h.free()
}

func (b *books) keys(what string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[what]
}

func (e *env) bookChild(b *books) *child {
	config := e.child(b.receiver)
	config.Receiver = b.front.URL
	return startChild(e.t, config)
}

// letter waits for the one open dead letter of a job.
func (e *env) letter(rt *quipu.Runtime, job quipu.Job) (found quipu.DeadLetter) {
	e.t.Helper()
	e.eventually("a dead letter of "+job.Key, func() bool {
		letters, err := rt.Operator().DeadLetters(e.t.Context(), quipu.DeadLetterFilter{Limit: 100})
		require.NoError(e.t, err)
		for _, l := range letters {
			if l.Job.Key == job.Key {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

// P16, 3.2 row 2, 3.3: the process dies after the outside calls and before
// anything is recorded; another takes over and asks the verifier.
func TestP16VerifiedTakeover(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		b := newBooks(t, map[string]effects.Answer{
			"verified done":     {State: effects.StateDone, Result: json.RawMessage(`{"receipt":"from the books"}`)},
			"verified not-done": {State: effects.StateNotDone},
			"verified unknown":  {State: effects.StateUnknown, Note: "the books are closed"},
		})
		rt := e.open(e.config(nil))
		e.deploy(rt, oneStep("verified"))
		jobs, holds := map[string]quipu.Job{}, map[string]*hold{}
		for what := range b.says {
			id := strings.TrimPrefix(what, "verified ")
			holds[what], jobs[id] = b.hold(t, what), e.start(rt, "one", id, order{ID: id})
		}
		first := e.bookChild(b)
		for _, h := range holds {
			<-h.arrived
		}
		first.kill()
		for what, h := range holds {
			b.forget(what, h)
		}
		e.bookChild(b)
		l := e.letter(rt, jobs["unknown"])
		require.Contains(t, l.Message, "its verifier was asked: it does not know whether it was done (the books are closed)")
		require.NoError(t, rt.Operator().Decide(t.Context(), quipu.Decision{DeadLetter: l.ID, Verdict: quipu.Done, Result: map[string]string{"receipt": "by hand"}, Who: "ann", Reason: "it is in their books"}))
		for id, receipt := range map[string]string{"done": "from the books", "not-done": "", "unknown": "by hand"} {
			out, err := e.wait(rt, jobs[id])
			require.NoError(t, err, id)
			calls, keys := b.askedFor("verified " + id)
			if receipt == "" {
				require.Equal(t, []int{2, 2}, []int{calls, keys}, "it is called again, under the next key")
			} else {
				require.JSONEq(t, `{"receipt":"`+receipt+`"}`, string(out))
				require.Equal(t, []int{1, 1}, []int{calls, keys}, "%s: the handler goes on without the call", id)
			}
			asked := b.keys("verified " + id)
			require.Len(t, asked, 1, id)
			f, err := rt.Effect(t.Context(), mustDigest(t, asked[0]))
			require.NoError(t, err)
			require.Equal(t, id == "not-done", f.State == quipu.EffectNotDone)
		}
		e.clean(rt)
	})
}

func mustDigest(t *testing.T, text string) journal.Digest {
	t.Helper()
	d, err := journal.ParseDigest(text)
	require.NoError(t, err)
	return d
}

// ledger is an outside that is told what it says of each order.
type ledger struct {
	mu    sync.Mutex
	calls map[string][]string // keys, by order
	says  map[string]effects.State
	asked map[string]int
}

func newLedger() *ledger {
	return &ledger{calls: map[string][]string{}, says: map[string]effects.State{}, asked: map[string]int{}}
}

func (l *ledger) set(id string, s effects.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.says[id] = s
}

// key is that of the n-th call for an order.
func (l *ledger) key(t *testing.T, id string, n int) journal.Digest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mustDigest(t, l.calls[id][n])
}

func (l *ledger) count(id string) (calls, asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls[id]), l.asked[id]
}

// doubted registers a handler whose first attempt fails after its effect, so that the
// second has it verified.
func (l *ledger) doubted(mode effects.Mode) *workers.Registry {
	reg := workers.New()
	workers.Handle(reg, "charge", func(ctx context.Context, in order) (map[string]string, error) {
		out, err := effects.Do(ctx, "charge", func(ctx context.Context) (map[string]string, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.calls[in.ID] = append(l.calls[in.ID], effects.Key(ctx))
			return map[string]string{"receipt": fmt.Sprint(in.ID, "-", len(l.calls[in.ID]))}, nil
		})
		if err == nil && workers.Info(ctx).Turn == 1 {
			err = errors.New("fails after its effect")
		}
		return out, err
	})
	workers.Verify(reg, "charge", effects.VerifierFunc(func(_ context.Context, q effects.Question) (effects.Answer, error) {
		var in order
		if err := json.Unmarshal(q.Input, &in); err != nil {
			return effects.Answer{}, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked[in.ID]++
		if len(l.calls[in.ID]) > 1 && l.calls[in.ID][1] == q.Key {
			return effects.Answer{State: effects.StateDone}, nil // the second call reached it
		}
		return effects.Answer{State: l.says[in.ID], Note: "looked"}, nil
	}), mode)
	return reg
}

// 3.3, E10: an effect that its verifier contradicts waits for a person, who
// confirms it, voids it, has the verifier asked again, or gives it up.
func TestE10VerifyAsksAPerson(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		l := newLedger()
		rt, _ := e.run(l.doubted(effects.Human))
		e.deploy(rt, oneStep("charge"))
		jobs := map[string]quipu.Job{}
		for _, id := range []string{"confirmed", "voided", "again", "failed"} {
			l.set(id, effects.StateNotDone)
			jobs[id] = e.start(rt, "one", id, order{ID: id})
		}
		letters := map[string]quipu.DeadLetter{}
		for id, job := range jobs {
			letters[id] = e.letter(rt, job)
			require.Contains(t, letters[id].Message, "was not done (looked)")
			require.Equal(t, "confirm", e.parkedClass(rt, job))
		}
		ctx := t.Context()
		key := l.key(t, "voided", 0)
		require.ErrorIs(t, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: letters["voided"].ID, Verdict: quipu.Resolve, Effect: key}), quipu.ErrInput)
		require.NoError(t, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: letters["confirmed"].ID, Verdict: quipu.Done, Who: "ann", Reason: "it is in their books"}))
		require.NoError(t, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: letters["voided"].ID, Verdict: quipu.Retry, Effect: key, Who: "ann", Reason: "it is not in their books"}))
		require.NoError(t, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: letters["failed"].ID, Verdict: quipu.Fail, Code: 502, Message: "it is lost", Who: "ann"}))
		l.set("again", effects.StateDone)
		require.NoError(t, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: letters["again"].ID, Verdict: quipu.Retry, Who: "ann", Reason: "they were late"}))

		for id, want := range map[string]string{"confirmed": "confirmed-1", "voided": "voided-2", "again": "again-1"} {
			out, err := e.wait(rt, jobs[id])
			require.NoError(t, err, id)
			require.JSONEq(t, `{"receipt":"`+want+`"}`, string(out))
		}
		_, err := e.wait(rt, jobs["failed"])
		failed, ok := errors.AsType[*quipu.JobError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 502, failed.Code)

		for id, want := range map[string][2]int{"confirmed": {1, 1}, "voided": {2, 1}, "again": {1, 2}, "failed": {1, 1}} {
			calls, asked := l.count(id)
			require.Equal(t, want, [2]int{calls, asked}, id)
		}
		require.NotEqual(t, key, l.key(t, "voided", 1), "under the next key")
		f, err := rt.Effect(ctx, key)
		require.NoError(t, err)
		require.Equal(t, quipu.EffectNotDone, f.State)
		require.Equal(t, store.FailureVoided, f.Error.Class)
		f, err = rt.Effect(ctx, l.key(t, "confirmed", 0))
		require.NoError(t, err)
		require.True(t, f.Vouched)
		said := *f.Entries[len(f.Entries)-1].Operator
		require.NotEmpty(t, said.Login)
		require.Equal(t, journal.Operator{Action: collation.ActionDone, Who: "ann", Reason: "it is in their books", Login: said.Login}, said)
		e.clean(rt)
	})
}

// parkedClass is the class of the parked response of a job.
func (e *env) parkedClass(rt *quipu.Runtime, job quipu.Job) (class string) {
	e.t.Helper()
	for _, entry := range e.entries(rt, job) {
		if r := entry.Response; r != nil && r.Kind == journal.ResponseParked {
			class = r.Error.Class
		}
	}
	return class
}

// J8: that an effect did not happen is proved by the journal of its job once that
// is closed; before, it has not happened so far.
func TestJ8AnEffectThatDidNotHappen(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		reg := workers.New()
		reached, release := make(chan struct{}), make(chan struct{})
		workers.Handle(reg, "charge", func(ctx context.Context, in order) (map[string]string, error) {
			return effects.Do(ctx, "charge", func(context.Context) (map[string]string, error) {
				close(reached)
				<-release
				return map[string]string{"receipt": in.ID}, nil
			}, effects.WithKey("line-1"))
		})
		rt, _ := e.run(reg)
		e.deploy(rt, oneStep("charge"))
		job := e.start(rt, "one", "order-1", order{ID: "order-1"})
		<-reached
		ev, err := rt.Evidence(t.Context(), job, "charge[line-2]")
		require.NoError(t, err)
		require.Empty(t, ev.Effects)
		require.False(t, ev.Final, "it can still happen")
		close(release)
		_, err = e.wait(rt, job)
		require.NoError(t, err)
		e.settled(rt)

		for _, absent := range []string{"refund", "charge[line-2]", "charg", strings.Repeat("0", 64)} {
			ev, err = rt.Evidence(t.Context(), job, absent)
			require.NoError(t, err)
			require.Empty(t, ev.Effects, absent)
			require.True(t, ev.Final)
			require.Empty(t, ev.Violation)
			require.Equal(t, 1, ev.Chains)
			require.Equal(t, journal.JobCompleted, ev.State)
		}
		for _, present := range []string{"charge", "charge[line-1]", ""} {
			ev, err = rt.Evidence(t.Context(), job, present)
			require.NoError(t, err)
			require.NotEmpty(t, ev.Effects)
			// A process that could not renew its session in time begins no call: what it
			// had begun is recorded as not done, and the next attempt does it.
			for _, before := range ev.Effects[:len(ev.Effects)-1] {
				require.Equal(t, quipu.EffectNotDone, before.State)
			}
		}
		f := ev.Effects[len(ev.Effects)-1]
		require.Equal(t, []any{"step", ",0,0", quipu.EffectCompleted, effects.Guarded}, []any{f.Activity, f.Address, f.State, f.Class})
		require.JSONEq(t, `{"receipt":"order-1"}`, string(f.Result))
		var kinds []journal.Kind
		for _, entry := range f.Entries {
			kinds = append(kinds, entry.Kind)
		}
		require.Equal(t, []journal.Kind{journal.KindEffectStarted, journal.KindEffectCompleted}, kinds)
		byKey, err := rt.Effect(t.Context(), f.Key)
		require.NoError(t, err)
		require.Equal(t, f, *byKey)
		_, err = rt.Effect(t.Context(), journal.Digest{1})
		require.ErrorIs(t, err, quipu.ErrNotFound)
	})
}
