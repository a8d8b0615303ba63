package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// C11, T8: processes of one space may run in different modes. One that enters
// apart from its work dies after the entry; another, which does step 1 and step 2
// in one plan, takes the response from that entry: the store cannot give it
// through the instance before the commit.
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
			// A further message of the batch sees the result, without a commit.
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
