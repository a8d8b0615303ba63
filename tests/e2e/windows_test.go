package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/tests/faults/play"
	"github.com/quipu-journal/quipu/tests/rig"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, windowHandlers) }

// windowHandlers register, for each class, a handler and a durable function that
// call the receiver before, inside and after one effect: places for a kill.
func windowHandlers(reg *workers.Registry, receiver string) {
	for _, class := range []effects.Class{effects.Pure, effects.Idempotent, effects.Guarded} {
		body := func(ctx context.Context, in order) (map[string]string, error) {
			reach := func(ctx context.Context, point, key string) error {
				_, err := play.Call(ctx, receiver, key, point+" "+in.ID)
				return err
			}
			if err := reach(ctx, "before", "before "+in.ID); err != nil {
				return nil, err
			}
			receipt, err := effects.Do(ctx, "inside", func(ctx context.Context) (string, error) {
				return "done " + in.ID, reach(ctx, "inside", effects.Key(ctx))
			}, class)
			if err != nil {
				return nil, err
			}
			return map[string]string{"receipt": receipt}, reach(ctx, "after", "after "+in.ID)
		}
		workers.Handle(reg, "window."+string(class), body)
		workers.HandleDurable(reg, "fnwindow."+string(class), func(ctx context.Context, in order) (map[string]string, error) {
			if err := workers.Sleep(ctx, "nap", time.Millisecond); err != nil {
				return nil, err
			}
			return body(ctx, in)
		})
	}
	workers.HandleDurable(reg, "reviewed", func(ctx context.Context, in struct {
		For string `json:"for"`
	},
	) (any, error) {
		d, err := time.ParseDuration(in.For)
		if err != nil {
			return nil, workers.Fail(400, err.Error())
		}
		got, err := workers.Await[json.RawMessage](ctx, "reviewed", d)
		if err != nil {
			if !errors.Is(err, workers.ErrAwaitTimeout) {
				return nil, err
			}
			return map[string]any{"by": "timer", "got": nil}, nil
		}
		return map[string]any{"by": "signal", "got": got}, nil
	})
}

// P16, 3.2: the process dies before, in and after an effect of each class, in a
// handler and in a durable function. An Idempotent effect runs again under the same
// key, a Guarded one never by itself: a person answers; a Tx is there once. (For death
// behind the answer, and at all boundaries, see TestE12CrashOfAFunction.)
func TestE3CrashWindows(t *testing.T) {
	inAMode(t, func(_ *testing.T, e *env) { e.dieInWindows(windows()) })
}

// window is a job whose process dies at a point of it.
type window struct {
	class            effects.Class
	topic, point, id string

	hold *rig.Hold
	job  quipu.Job
}

// windows are a job for each class and point, in a handler or in a function; in a soak
// in both.
func windows() (all []*window) {
	for _, class := range []effects.Class{effects.Pure, effects.Idempotent, effects.Guarded, effects.Tx} {
		topics := []string{"window." + string(class), "fnwindow." + string(class)}
		switch {
		case class == effects.Tx:
			topics = []string{"note"}
		case !soak.On():
			topics = topics[rand.N(2):][:1]
		}
		for _, topic := range topics {
			for _, point := range []string{"before", "inside", "after"} {
				all = append(all, &window{class: class, topic: topic, point: point, id: topic + "-" + point})
			}
		}
	}
	return all
}

// dieInWindows has one process die in all windows at once.
func (e *env) dieInWindows(all []*window) {
	t := e.t
	db, r, rt := e.tables(), rig.NewOutside(t), e.client()
	for _, w := range all {
		w.hold = r.Hold(t, w.point+" "+w.id)
		f := e.deploy(rt, replaced(oneStep(w.topic), "flow: one", "flow: "+strings.ReplaceAll(w.topic, ".", "_")))
		w.job = e.start(rt, f.Name(), w.id, order{ID: w.id})
	}
	dying := startChild(t, e.child(r))
	for _, w := range all {
		if await(t, "the call at "+w.id, w.hold.Arrived); w.point == "after" { // the handler goes on while the result is being recorded (E4)
			e.eventually("the effect of "+w.id+" is recorded", func() bool {
				return e.count(db, "quipu_shop.effects e JOIN quipu_shop.jobs j ON j.n = e.n WHERE j.key = $1 AND e.state = 'completed'", w.id) == 1
			})
		}
	}
	dying.Kill()
	for _, w := range all {
		w.hold.Free()
	}
	startChild(t, e.child(r))
	for _, w := range all {
		wantCalls, receipt := 1, "done "+w.id
		switch {
		case w.point != "inside":
		case w.class == effects.Guarded:
			letter := e.letter(rt, w.job)
			require.NoError(t, rt.Operator().Decide(t.Context(), quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Result: "by hand", Who: "ann", Reason: "found it in their books"}))
			receipt = "by hand"
		default:
			wantCalls = 2
		}
		out, err := e.wait(rt, w.job)
		require.NoError(t, err, w.id)
		require.JSONEq(t, `{"receipt":"`+receipt+`"}`, string(out))
		calls, keys := r.AskedFor("inside " + w.id)
		require.Equal(t, 1, keys, "%s: one key, on every run", w.id)
		require.Equal(t, wantCalls, calls, w.id)
		if w.class == effects.Tx {
			require.Equal(t, 1, e.count(db, "notes WHERE id = $1", w.id))
		}
	}
	e.clean(rt)
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
