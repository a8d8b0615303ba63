package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
)

// fsck has a line for each difference, with what to do where the journal cannot give it back
// (S11).
func TestFindingsArePrinted(t *testing.T) {
	t.Parallel()
	f := quipu.Findings{
		Job: quipu.Job{ID: journal.JobID{1}, Key: "order-42"}, State: "quarantined",
		Differences: []quipu.Difference{
			{Difference: journal.Difference{Table: "jobs", Row: "1", Column: "semaphore", Stored: "9", Journal: "1"}},
			{Difference: journal.Difference{Table: "dispatches", Row: "2", Journal: "answer"}, Left: "restore it"},
			{Difference: journal.Difference{Table: "waits", Row: "3", Stored: "paid"}},
		},
	}
	print := func(f quipu.Findings, output string, repaired bool) string {
		var out bytes.Buffer
		a := &app{streams: cli.Streams{Out: &out}, output: output}
		require.NoError(t, a.findings(&f, repaired))
		return out.String()
	}
	require.Equal(t, `order-42: jobs 1 semaphore: stored 9, by the journal 1
order-42: dispatches 2: stored nothing, by the journal answer; cannot be rebuilt: restore it
order-42: waits 3: stored paid, by the journal nothing
`, print(f, "table", false))
	require.True(t, strings.HasSuffix(print(f, "table", true), "order-42: repaired, 3 differences\n"))
	require.Contains(t, print(f, "json", true), `"repaired":true`)
	f.Broken = "V2 at entry 3: no"
	require.Contains(t, print(f, "table", false), "its journal breaks a law, and is not repaired: V2 at entry 3: no")
	require.Contains(t, print(quipu.Findings{Job: f.Job, State: "quarantined"}, "table", false), "repair lets it go on")
	require.Empty(t, print(quipu.Findings{Job: f.Job, State: "open"}, "table", false))
}

// fsck only reads, says nothing of sound jobs, and repairs no job that is open.
func TestFsckOfSoundJobs(t *testing.T) {
	s := newSpace(t)
	s.deployText("declined", declined)
	s.ok("", "start", "declined", "f1")
	s.fails(codeEnded, "", "wait", "f1", "--timeout", "1m")
	require.Equal(t, "no quarantined jobs\n", s.do("", "fsck").Err)
	require.Empty(t, s.ok("", "fsck", "--all"))
	require.Equal(t, "1 job: the tables are what the journals give\n", s.do("", "fsck", "--all").Err)
	require.Empty(t, s.ok("", "fsck", "f1"))
	s.fails(codeNotFound, "", "fsck", "nobody")
	require.Contains(t, s.fails(codeRefused, "", "fsck", "f1", "--repair", "--reason", "to be sure").Err, "its tables are what its journal gives")
	s.fails(cli.CodeUsage, "", "fsck", "--repair", "--reason", "x")
	s.fails(cli.CodeUsage, "", "fsck", "f1", "--repair")
	s.fails(cli.CodeUsage, "", "fsck", "f1", "--who", "ann")
	s.fails(cli.CodeUsage, "", "fsck", "f1", "--all")
}
