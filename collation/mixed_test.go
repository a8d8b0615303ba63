package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// C11, T8: processes of one space may run in different modes. One that commits the entry apart
// from the work dies after the entry. Another, which does step 1 and step 2 in one plan, takes
// the response from that entry: the store cannot give it through the instance before the
// commit.
func TestC11EntryStepwiseAndWorkTogether(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]collation.Mode{"nofold": {Resend: 1e6}, "fold": {Resend: 1e6, Fold: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := atLeg2(t, stepwise)
			m := respond(a, ok(`{"x":1}`))
			require.False(t, w.commitOnce(m).Done, "the entry alone")
			w.mode = mode
			w.forget()
			// What the store answers before the commit: the instance has no result yet.
			w.state.Results[collation.InstanceKey{Activity: "a", DAD: a.DAD}] = nil
			p := w.step(&m)
			require.NotEqual(t, collation.Quarantined, p.Outcome, "%+v", p.Entry.Trouble)
			w.commit(p)
			// The next message of the batch sees the result before a commit.
			require.Equal(t, `{"x":1}`, string(w.state.Results[collation.InstanceKey{Activity: "a", DAD: a.DAD}].Output))
			for len(w.asked) < 2 {
				w.next()
			}
			require.Equal(t, `{"from":1}`, string(w.asked[1].Body))
			w.handle(respond(&w.asked[1], ok(`{}`)))
			require.Equal(t, journal.JobCompleted, w.state.Job.State)
		})
	}
}

// C11, T8: as above, with the response of the last element: the gathered result contains it,
// although its step 1 is in the same plan (1.11).
func TestC11LastElementEnteredStepwiseAndGatheredTogether(t *testing.T) {
	t.Parallel()
	f, err := flow.New("items").Version("1").Output("${ items.output }").Trigger("start").
		Worker("items", "topic", flow.Each("[1, 2, 3]")).Transition("start", "items").Build()
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), stepwise)
	for len(w.asked) < 3 {
		w.next()
	}
	w.handle(respond(&w.asked[0], ok(`"a"`)))
	w.handle(respond(&w.asked[2], ok(`"c"`)))
	m := respond(&w.asked[1], ok(`"b"`))
	require.False(t, w.commitOnce(m).Done, "the entry alone")
	w.mode = collation.Mode{Resend: 1e6}
	w.handle(m)
	require.Equal(t, journal.JobCompleted, w.state.Job.State)
	last := w.entries[len(w.entries)-1]
	require.Equal(t, `["a","b","c"]`, string(last.Close.Output))
}
