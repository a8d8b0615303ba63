package collation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// decided steps a message with nothing loaded before, and counts the loads that its decision
// asks for.
func (w *world) decided(m *collation.Message) (p *collation.Plan, trips int) {
	w.forget()
	for {
		x, err := journaltest.Carrying(w.state, m)
		if err != nil {
			panic(err) // a row was written here
		}
		p, need := collation.Step(w.state, &x, w.mode)
		if need == nil {
			return p, trips
		}
		trips++
		w.load(need)
	}
}

// J6: an expression that mentions many activities needs one load, not one for each. The engine
// gives up a message that asks too often.
func TestJ6OneTripForAllNames(t *testing.T) {
	t.Parallel()
	b := flow.New("many").Version("1").Trigger("start")
	var sum []string
	last := "start"
	for i := range 40 {
		name := fmt.Sprintf("w%d", i)
		b = b.Worker(name, "topic").Transition(last, name)
		sum = append(sum, name+".output.x")
		last = name
	}
	f, err := b.Output(map[string]any{"sum": "${ " + strings.Join(sum, " + ") + " }"}).Build()
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), collation.Mode{Resend: 1e6})
	for i := range 40 {
		w.settle()
		m := *journaltest.Response(&w.asked[i],
			&journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`{"x":1}`)})
		p, trips := w.decided(&m)
		require.LessOrEqual(t, trips, 2)
		w.commit(p)
	}
	require.Equal(t, journal.JobCompleted, w.state.Job.State)
	require.Equal(t, `{"sum":40}`, string(w.entries[len(w.entries)-1].Close.Output))
}

// J6: joins that are skipped one after another need one load, too.
func TestJ6OneTripForSkippedJoins(t *testing.T) {
	t.Parallel()
	b := flow.New("skips").Version("1").Trigger("start").Worker("d0", "topic").Worker("on", "topic").
		Transition("start", "d0", flow.When("false")).Transition("start", "on")
	for i := range 40 {
		from, to := fmt.Sprintf("d%d", i), fmt.Sprintf("d%d", i+1)
		left, right := fmt.Sprintf("l%d", i), fmt.Sprintf("r%d", i)
		b = b.Worker(left, "topic").Worker(right, "topic").Worker(to, "topic").
			Transition(from, left).Transition(from, right).Transition(left, to).Transition(right, to)
	}
	f, err := b.Build()
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{}`), collation.Mode{Resend: 1e6})
	p, trips := w.decided(&w.queue[0])
	require.LessOrEqual(t, trips, 2)
	require.Len(t, p.Ledgers, 40)
}
