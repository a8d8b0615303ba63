package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// maxTurns bounds the turns of a random function.
const maxTurns = 300

// bring ends a pause, given by kind and name; its name decides what it brings.
func (w *world) bring(pause string) {
	kind, name, _ := strings.Cut(pause, " ")
	switch {
	case kind == "signal" && hash(name)%3 == 0:
		w.timeout(name)
	case kind == "child" && hash(name)%4 == 0:
		w.wakeWith(journal.PauseChild, name,
			&journal.Response{Code: 404, Error: &journal.Failure{Class: "x", Message: name}})
	default:
		w.wake(journal.PauseKind(kind), name, fmt.Sprint(hash(pause)))
	}
}

func pausesOf(r *wire.Response) []string {
	var names []string
	for _, p := range r.Pauses {
		names = append(names, string(p.Kind)+" "+p.Name)
	}
	return names
}

// end is the outcome of a function, with its records and calls.
type end struct {
	response string
	recorded []string
	turns    int
	ops      int
}

// finish runs the function to its end; each time it waits, one of its pauses ends.
func (w *world) finish(t *rapid.T) end {
	counting := &crash{left: 1 << 30}
	for turn := 1; turn < maxTurns; turn++ {
		if w.crash == nil {
			w.crash = counting
		}
		r := w.next()
		if r.Kind == journal.ResponseSuspended {
			require.NotEmpty(t, r.Pauses)
			w.wakeOne(pausesOf(r), func(name string) int { return hash("order", name) })
			continue
		}
		if r.Kind == journal.ResponseFailedAttempt && w.q.Attempt <= w.q.Attempts {
			continue
		}
		recorded := w.recorded()
		slices.Sort(recorded)
		message := ""
		if r.Error != nil {
			message = r.Error.Message
		}
		return end{fmt.Sprint(r.Kind, r.Code, string(r.Output), message, r.Undone), recorded, turn, counting.ops}
	}
	require.FailNow(t, "it does not end")
	return end{}
}

// comparable leaves out the times, which differ between runs.
func comparable(e end) end {
	var out []string
	for _, r := range e.recorded {
		if i := strings.Index(r, " now completed"); i >= 0 {
			r = r[:i]
		}
		out = append(out, r)
	}
	e.recorded, e.ops = out, 0
	return e
}

// A function whose process dies at any of its writes, before or after it, has the same outcome, records
// and turns. So it has if it goes on where it stands instead of running from its top each time.
func TestE12CrashesChangeNothing(t *testing.T) {
	t.Parallel()
	went := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := draw(rt, false)
		finish := func(stands bool, c *crash) (got end, most int) {
			p := p.fresh()
			w := newWorld(t, p.run, `1`)
			w.stands, w.crash = stands, c
			got = w.finish(rt)
			w.dropped()
			went += w.wentOn
			_, most = p.outer.keys()
			return got, most
		}
		whole, _ := finish(false, nil)
		for _, stands := range []bool{false, true} {
			calm, most := finish(stands, nil)
			require.Equal(rt, comparable(whole), comparable(calm), "it stands: %t, of %+v", stands, p.body)
			require.LessOrEqual(rt, most, 1)
			for at := 2; at <= 2*calm.ops+1; at++ {
				got, most := finish(stands, &crash{left: at / 2, after: at%2 == 0})
				require.Equal(rt, comparable(whole), comparable(got), "crash at write %d, carried out: %t, it stands: %t, of %+v", at/2, at%2 == 0, stands, p.body)
				require.LessOrEqual(rt, most, 2, "a call is made again only by a crash")
			}
		}
	})
	require.Positive(t, went, "functions went on")
}

// In whatever order pauses end, and however often the process dies, the record fits the
// function at every moment, and both have the same end.
func TestE13RecordsFitTheirFunctions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := draw(rt, true)
		w := newWorld(t, p.run, `1`)
		var pending []string
		for turn := 0; ; turn++ {
			require.Less(rt, turn, maxTurns)
			if rapid.IntRange(0, 3).Draw(rt, "crash") == 0 {
				w.crash = &crash{left: rapid.IntRange(1, 6).Draw(rt, "at"), after: rapid.Bool().Draw(rt, "after")}
			}
			r := w.run()
			w.crash = nil
			if r != nil {
				w.heard(r)
				pending = pausesOf(r)
			}
			replayed := w.replay()
			require.NotEqual(rt, ReplayDiverged, replayed.End, "%v, of %+v", replayed.Err, p.body)
			if r != nil && r.Kind == journal.ResponseTerminal {
				replayed = w.replay(true)
				require.Equal(rt, r.Output, replayed.Response.Output, "%+v", p.body)
				require.Equal(rt, r.Error, replayed.Response.Error, "%+v", p.body)
				return
			}
			if r != nil && r.Kind == journal.ResponseFailedAttempt {
				require.LessOrEqual(rt, w.q.Attempt, w.q.Attempts+1)
				if w.q.Attempt > w.q.Attempts {
					return
				}
			}
			if r != nil {
				require.NotEqual(rt, journal.ResponseParked, r.Kind, "%+v", r.Error)
			}
			for i := len(pending) - 1; i >= 0; i-- { // some of them, in any order
				if rapid.IntRange(0, 2).Draw(rt, "come") > 0 || r != nil && len(pending) == 1 {
					w.bring(pending[i])
					pending = slices.Delete(pending, i, i+1)
				}
			}
		}
	})
}

// changed is the program with another call at one of its places, one less, or one more.
func (p *program) changed(t *rapid.T) *program {
	return &program{body: p.body, names: p.names, outer: p.outer, change: change{
		name: fmt.Sprint("n", rapid.IntRange(1, p.names).Draw(t, "at")),
		how:  rapid.SampledFrom([]string{"insert", "delete", "replace", "behind"}).Draw(t, "how"),
		other: node{
			kind: rapid.SampledFrom([]string{"call", "sleep", "now", "args", "undo", "child"}).Draw(t, "other"), name: "other", n: 1,
		},
	}}
}

// undoCause finds the recorded reason for the undoing.
func undoCause(w *world) (cause []byte, is bool) {
	for _, r := range w.store.Rows(w.id()) {
		if r.Name == "undo" && r.Position == "" {
			return r.Result, true
		}
	}
	return nil, false
}

// A change under a running job that does not fit its record is reported. The run that
// finds it records and does nothing, and with the old code the job goes on as before.
func TestE15ADifferenceLeavesNoTrace(t *testing.T) {
	t.Parallel()
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := draw(rt, false)
		whole := newWorld(t, p.fresh().run, `1`).finish(rt)
		w := newWorld(t, p.run, `1`)
		for range rapid.IntRange(0, whole.turns-1).Draw(rt, "turns") {
			if r := w.next(); r.Kind == journal.ResponseSuspended {
				w.wakeOne(pausesOf(r), func(name string) int { return hash("order", name) })
			}
		}
		q := p.changed(rt)
		before, calls := w.recorded(), len(p.outer.names)
		deploy(w, q.run)
		r := w.run()
		if r.Kind != journal.ResponseParked {
			return
		}
		found++
		require.Equal(rt, wire.ClassNondeterminism, r.Error.Class)
		// Lost branches only run for their compensations; a change in them shows when the
		// function has already failed.
		if _, undoing := undoCause(w); !undoing {
			require.Equal(rt, before, w.recorded(), "%+v\nat %+v\n%s", p.body, q.change, r.Error.Message)
			require.Len(rt, p.outer.names, calls)
		}
		w.heard(r)
		deploy(w, p.run)
		got := comparable(w.finish(rt))
		want := comparable(whole)
		got.turns, want.turns = 0, 0
		require.Equal(rt, want, got)
	})
	require.Positive(t, found, "changes are found")
}
