package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
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
		rt := e.client()
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
