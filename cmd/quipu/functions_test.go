package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// J10: a job is shown with what its functions waited for, as it was.
func TestReplayOfAFunction(t *testing.T) {
	t.Parallel()
	nap := replaytest.Sleep("nap", "1", 3600e6)
	reviewed := replaytest.Signal("reviewed", "2", "order.reviewed", "order-42", 0)
	j := replaytest.NewFunction(collation.Mode{}).Suspend(nap, reviewed).Wake("nap").
		Suspend(replaytest.Sleep("later", "3", 3600e6)).Journal()
	was := replay.New(j.Header)
	last, err := rewind(was, j.All(), 0)
	require.NoError(t, err)
	p := pastOf(was, last)
	require.Len(t, p.Pauses, 3)
	require.Equal(t, pause{
		Kind: "sleep", Name: "nap", Position: "1", Activity: "fn", DAD: ",0,0", Due: p.Pauses[0].Due, Since: 4, Came: 5,
	}, p.Pauses[0])
	require.Equal(t, pause{Kind: "signal", Name: "reviewed", Position: "2", Activity: "fn", DAD: ",0,0", Since: 4}, p.Pauses[1])
	require.True(t, p.Pauses[2].Waits)
	for i := range p.Pauses {
		p.Pauses[i].Due = nil
	}
	var b bytes.Buffer
	require.NoError(t, sections(&b, pauses(&b, p.Pauses)))
	require.Equal(t, `FUNCTION  ADDRESS  WAITS FOR          POSITION  DUE  SINCE ENTRY  
fn        ,0,0     sleep "nap"        1              4            came with entry 5
fn        ,0,0     signal "reviewed"  2              4            taken back
fn        ,0,0     sleep "later"      3              6            waits
`, b.String())
}

// The JSON of show has what a row waits for.
func TestRowsOfFunctions(t *testing.T) {
	t.Parallel()
	r := rowOf(&collation.Row{Request: collation.Request{Pauses: []collation.Pause{{PauseRef: journal.PauseRef{
		Kind: journal.PauseSleep, Name: "nap",
		Position: "1",
	}, Came: true}}}})
	require.Equal(t, []paused{{"sleep", "nap", "1", true}}, r.Pauses)
}

// A job that runs compensations says for which job.
func TestShowNamesWhatIsUndone(t *testing.T) {
	t.Parallel()
	v := &shown{JobView: &store.JobView{}}
	v.Parent = &journal.Parent{Activity: "charge", DAD: ",0,0"}
	var b bytes.Buffer
	s := &shower{app: &app{streams: cli.Streams{Out: &b}}}
	s.header(v, "order-42")
	require.Contains(t, b.String(), "undoes   charge at ,0,0 of order-42\n")
	v.Parent.Awaited = true
	s.header(v, "order-42")
	require.Contains(t, b.String(), "parent   order-42, by charge at ,0,0\n")
}
