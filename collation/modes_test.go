package collation_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// randomTree draws a flow of a trigger and workers: a tree with transitions for success and for
// errors.
func randomTree(t *rapid.T) *flow.Flow {
	b := flow.New("tree").Version("1").Trigger("a0")
	n := rapid.IntRange(1, 8).Draw(t, "activities")
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("a%d", i)
		parent := rapid.IntRange(0, i-1).Draw(t, "parent of "+name)
		b = b.Worker(name, "topic."+name, flow.Input(map[string]any{"n": i, "from": "${ a0.output.x }"}),
			flow.Retry{Attempts: 3, Backoff: 1e9, Factor: 2, Max: 6e10, Jitter: 0.2})
		from := fmt.Sprintf("a%d", parent)
		if parent > 0 && rapid.Bool().Draw(t, "on error of "+name) {
			b = b.Transition(from, name, flow.OnError())
		} else {
			b = b.Transition(from, name)
		}
	}
	f, err := b.Build()
	require.NoError(t, err)
	return f
}

// answerOf is a worker's answer in an attempt: a pure function, so that every interleaving gets
// the same answers.
func answerOf(seed int, r *collation.Row) *journal.Response {
	fail := func(kind journal.ResponseKind, code int) *journal.Response {
		return &journal.Response{Kind: kind, Code: code, Error: &journal.Failure{Class: "error", Message: "no"}}
	}
	switch h := (seed + 7*len(r.Activity) + 13*int(r.Activity[len(r.Activity)-1])) % 5; {
	case h == 0 && r.Attempt == 1:
		return fail(journal.ResponseFailedAttempt, 500)
	case h == 1:
		return fail(journal.ResponseFailedAttempt, 503)
	case h == 2:
		return fail(journal.ResponseTerminal, 402)
	default:
		return &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`{"a":"` + r.Activity + `"}`)}
	}
}

// play delivers the job's messages in a drawn order, with duplicates, until nothing is open. It
// checks the laws at every commit.
func play(t *rapid.T, f *flow.Flow, seed int, mode collation.Mode, label string) *world {
	w := newWorld(f, "k", []byte(`{"x":1}`), mode)
	var said []collation.Message
	for step := 0; ; step++ {
		open := w.open(seed)
		if len(open) == 0 {
			return w
		}
		require.Less(t, step, 2000, "the job does not end")
		i := rapid.IntRange(0, len(open)-1).Draw(t, label)
		m := open[i]
		if len(said) > 0 && rapid.IntRange(0, 3).Draw(t, label+" again") == 0 {
			m = said[rapid.IntRange(0, len(said)-1).Draw(t, label+" which")]
		}
		said = append(said, m)
		for _, p := range w.handle(m) {
			require.NotEqual(t, collation.Quarantined, p.Outcome, "%+v", p.Entry)
			require.GreaterOrEqual(t, p.Semaphore.After, int64(0), "C13")
		}
	}
}

// open lists the messages that have a row now, as engine and workers would get them.
func (w *world) open(seed int) []collation.Message {
	guids := slices.SortedFunc(maps.Keys(w.state.Rows), func(a, b journal.GUID) int { return slices.Compare(a[:], b[:]) })
	var out []collation.Message
	for _, g := range guids {
		switch r := w.state.Rows[g]; {
		case r == nil || r.Held != "":
		case r.Kind == journal.MessageRequest:
			out = append(out, respond(r, answerOf(seed, r)))
		default:
			out = append(out, message(r))
		}
	}
	return out
}

// digits are the final ledgers, by name.
func (w *world) digits() map[string]string {
	out := map[string]string{"job": string(w.state.Job.State)}
	for k, i := range w.state.Instances {
		if i != nil {
			out[k.Activity+string(k.DAD)] = fmt.Sprintf("%s code %d", i.Ledger, i.Code)
		}
	}
	return out
}

// TestC11AnyOrderAnyModeSameDigits: every interleaving and duplication of messages ends in the
// same ledgers, outputs and state, in every mode. Jobs that an error closes early are only
// checked by the laws, because the order decides which siblings were still open.
func TestC11AnyOrderAnyModeSameDigits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := randomTree(t)
		seed := rapid.IntRange(0, 1000).Draw(t, "seed")
		modes := []collation.Mode{
			{Resend: 1e6}, {Resend: 1e6, Fold: true}, {Resend: 1e6, Stepwise: true},
		}
		var first map[string]string
		for i, mode := range modes {
			w := play(t, f, seed, mode, fmt.Sprintf("mode %d", i))
			require.True(t, w.state.Job.State.Closed())
			require.Zero(t, w.state.Job.Semaphore, "I4")
			requireOneClose(t, w)
			got := w.digits()
			if w.state.Job.State == journal.JobFailed {
				got = map[string]string{"job": got["job"]}
			}
			if first == nil {
				first = got
			}
			require.Equal(t, first, got)
		}
	})
}

// requireOneClose checks I5: one snapshot, one close, one run of completion tasks.
func requireOneClose(t *rapid.T, w *world) {
	closes, tasks, snapshots := 0, 0, 0
	for _, e := range w.entries {
		if slices.Contains(e.Marks, journal.MarkClosed) {
			closes++
		}
		if slices.Contains(e.Marks, journal.MarkTasks) {
			tasks++
		}
	}
	for _, r := range w.state.Receipts {
		if r != nil && r.Ledger.Closed() {
			snapshots++
		}
	}
	require.Equal(t, []int{1, 1, 1}, []int{closes, tasks, snapshots}, "I5")
}
