package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// J10: a job is shown with what its functions waited for, as it was.
func TestReplayOfAFunction(t *testing.T) {
	t.Parallel()
	of := func(kind journal.PauseKind, name, position string, since int64) view.Pause {
		return view.Pause{Kind: kind, Name: name, Position: position, Activity: "fn", Address: ",0,0", SinceEntry: since}
	}
	all := []view.Pause{of("sleep", "nap", "1", 4), of("signal", "reviewed", "2", 4), of("sleep", "later", "3", 6)}
	all[0].CameEntry, all[2].Waits = 5, true
	var b bytes.Buffer
	require.NoError(t, sections(&b, pauses(&b, all)))
	require.Equal(t, `FUNCTION  ADDRESS  WAITS FOR          POSITION  DUE  SINCE ENTRY  
fn        ,0,0     sleep "nap"        1              4            came with entry 5
fn        ,0,0     signal "reviewed"  2              4            taken back
fn        ,0,0     sleep "later"      3              6            waits
`, b.String())
}

// A job that runs compensations says for which job.
func TestShowNamesWhatIsUndone(t *testing.T) {
	t.Parallel()
	v := &view.Job{Parent: &view.Parent{Activity: "charge", Address: ",0,0", Undoes: true}}
	var b bytes.Buffer
	s := &shower{app: &app{streams: cli.Streams{Out: &b}}}
	s.header(v, "order-42")
	require.Contains(t, b.String(), "undoes   charge at ,0,0 of order-42\n")
	v.Parent.Undoes = false
	s.header(v, "order-42")
	require.Contains(t, b.String(), "parent   order-42, by charge at ,0,0\n")
}
