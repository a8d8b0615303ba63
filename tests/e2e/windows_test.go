package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, windowHandlers) }

// windowHandlers register, for each class, a handler and a durable function that
// call the receiver before, inside and after one effect: places for a kill.
func windowHandlers(reg *workers.Registry, receiver string) {
	for _, class := range []effects.Class{effects.Pure, effects.Idempotent, effects.Guarded} {
		body := func(ctx context.Context, in order) (map[string]string, error) {
			reach := func(ctx context.Context, point, key string) error {
				_, err := world.Call(ctx, receiver, key, point+" "+in.ID)
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
//
// A process that stands still for longer than its lease loses its runs, at any point. Windows that
// this happened to are played again.
func TestE3CrashWindows(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		db, r, rt := e.tables(), world.NewOutside(t), e.client()
		all, stop := windows(), func() {}
		for try := 0; len(all) > 0; try++ {
			require.Less(t, try, 4, "a process has lost its runs each time, such as that of %s", all[0].id)
			stop()
			for _, w := range all {
				w.id = fmt.Sprintf("%s-%s-%d", w.topic, w.point, try)
			}
			stop = e.dieInWindows(all, db, r, rt)
			all = slices.DeleteFunc(all, func(w *window) bool { return !e.stood(w, db, r) })
		}
		e.Verify()
	})
}

// window is a job whose process dies at a point of it.
type window struct {
	class            effects.Class
	topic, point, id string

	hold   *world.Hold
	job    quipu.Job
	parked bool // a person has decided
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
				all = append(all, &window{class: class, topic: topic, point: point})
			}
		}
	}
	return all
}

// dieInWindows has one process die in all windows at once. Another one ends the jobs, and works on until stop.
func (e *env) dieInWindows(all []*window, db *pgx.Conn, r *world.Outside, rt *quipu.Runtime) (stop func()) {
	t := e.t
	for _, w := range all {
		w.hold = r.Hold(t, w.point+" "+w.id)
		f := e.Deploy(rt, replaced(oneStep(w.topic), "flow: one", "flow: "+strings.ReplaceAll(w.topic, ".", "_")))
		w.job = e.Start(rt, f.Name(), w.id, order{ID: w.id})
	}
	dying := startChild(t, e.child(r))
	for _, w := range all {
		e.reached(w, dying, db, rt)
	}
	dying.Kill()
	for _, w := range all {
		w.hold.Free()
	}
	next := startChild(t, e.child(r))
	for _, w := range all {
		receipt := "done " + w.id
		if w.parked = w.class == effects.Guarded && e.waitsForAPerson(rt, w.job); w.parked {
			letter := e.letter(rt, w.job)
			require.NoError(t, rt.Operator().Decide(t.Context(),
				quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Result: "by hand", Who: "ann", Reason: "found it in their books"}))
			receipt = "by hand"
		}
		out, err := e.Wait(rt, w.job)
		require.NoError(t, err, w.id)
		require.JSONEq(t, `{"receipt":"`+receipt+`"}`, string(out))
	}
	return next.Kill
}

// reached waits until the process is in the window. After an effect the handler goes on while the
// result is being recorded (E4). A Guarded effect whose run was lost meanwhile waits for a person.
func (e *env) reached(w *window, dying *world.Process, db *pgx.Conn, rt *quipu.Runtime) {
	e.t.Helper()
	arrived, came, late := false, w.hold.Arrived, time.After(patience)
	for {
		if arrived && (w.point != "after" ||
			e.count(db, "quipu_shop.effects e JOIN quipu_shop.jobs j ON j.n = e.n WHERE j.key = $1 AND e.state = 'completed'", w.id) == 1) {
			return
		}
		if w.class == effects.Guarded {
			if _, parked := e.openLetter(rt, w.job); parked {
				return
			}
		}
		select {
		case <-came:
			arrived, came = true, nil
		case <-time.After(20 * time.Millisecond):
		case <-dying.Gone:
			require.FailNow(e.t, "the process ended before the call at "+w.id, "%v", dying.Err)
		case <-late:
			require.FailNow(e.t, "no call, or no result of it, at "+w.id)
		}
	}
}

// stood checks how often the effect of a window was called, and says whether that tells of a run that
// its process lost because it stood still.
func (e *env) stood(w *window, db *pgx.Conn, r *world.Outside) bool {
	t := e.t
	calls, keys := r.AskedFor("inside " + w.id)
	runs, _ := r.AskedFor("before " + w.id)
	require.Equal(t, 1, keys, "%s: one key, on every run", w.id)
	require.LessOrEqual(t, calls, runs, w.id)
	if w.class == effects.Tx {
		require.Equal(t, 1, e.count(db, "notes WHERE id = $1", w.id))
	}
	if w.class == effects.Guarded {
		require.Equal(t, 1, calls, w.id)
		require.True(t, w.parked || w.point != "inside", w.id)
		return w.parked && w.point != "inside"
	}
	if runs > 2 { // besides the one that died, and the one after it
		return true
	}
	require.Equal(t, map[bool]int{true: 2, false: 1}[w.point == "inside"], calls, w.id)
	return false
}

// waitsForAPerson waits until a person has to decide, or until the job's end.
func (e *env) waitsForAPerson(rt *quipu.Runtime, job quipu.Job) bool {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	_, err := rt.Wait(ctx, job, quipu.UntilParked(true))
	require.NoError(e.t, ctx.Err(), "%s: %v", job.Key, err)
	return errors.As(err, new(*quipu.ParkedError))
}

// letter waits for the one open dead letter of a job.
func (e *env) letter(rt *quipu.Runtime, job quipu.Job) (found view.DeadLetter) {
	e.t.Helper()
	e.eventually("a dead letter of "+job.Key, func() (is bool) {
		found, is = e.openLetter(rt, job)
		return is
	})
	return found
}

// openLetter is the open dead letter of a job, if it has one.
func (e *env) openLetter(rt *quipu.Runtime, job quipu.Job) (found view.DeadLetter, is bool) {
	e.t.Helper()
	letters, err := rt.Operator().DeadLetters(e.t.Context(), quipu.DeadLetterFilter{Limit: 100})
	require.NoError(e.t, err)
	for _, l := range letters {
		if l.Key == job.Key {
			return l, true
		}
	}
	return found, false
}
