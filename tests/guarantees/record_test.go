package guarantees

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingIsRecordedUnasked(t *testing.T) {
	t.Setenv(Directory, "")
	require.NoError(t, Record(NameSim, Sim{}))
}

func TestRecordReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counts") // the first run makes it
	t.Setenv(Directory, dir)
	for _, seeds := range []uint64{7, 9} {
		require.NoError(t, Record(NameSim, Sim{Run: Begin()(), Seeds: seeds}))
	}
	raw, err := os.ReadFile(filepath.Join(dir, "sim.json"))
	require.NoError(t, err)
	var got Sim
	require.NoError(t, decode(raw, &got))
	require.EqualValues(t, 9, got.Seeds)
	require.Len(t, got.Date, 10)
	require.NotEmpty(t, got.Commit)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// A part of the matrix keeps the cells of the rest, with the commit at which
// each was run.
func TestCellsOfSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Directory, dir)
	run := func(commit string, cells ...Cell) {
		require.NoError(t, Record(NameFaults, Faults{Run: Run{Date: "2026-01-02", Commit: commit}, Cells: cells}))
	}
	run("a", Cell{Point: "K10", Fault: "F1", Result: Failed}, Cell{Point: "K2", Fault: "F12", Result: Passed})
	run("b", Cell{Point: "K2", Fault: "F2", Result: Passed}, Cell{Point: "K10", Fault: "F1", Result: Passed, Kills: 3})
	raw, err := os.ReadFile(filepath.Join(dir, "faults.json"))
	require.NoError(t, err)
	var got Faults
	require.NoError(t, decode(raw, &got))
	require.Equal(t, []Cell{
		{Point: "K2", Fault: "F2", Result: Passed, Date: "2026-01-02", Commit: "b"},
		{Point: "K2", Fault: "F12", Result: Passed, Date: "2026-01-02", Commit: "a"},
		{Point: "K10", Fault: "F1", Result: Passed, Kills: 3, Date: "2026-01-02", Commit: "b"},
	}, got.Cells)
}

func TestUnreadableCountsAreKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Directory, dir)
	file := filepath.Join(dir, "faults.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"cellz": []}`), 0o600))
	require.ErrorContains(t, Record(NameFaults, Faults{}), "cellz")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
}
