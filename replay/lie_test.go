package replay_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/edit"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Digit weights, as in the spec.
const (
	trillion  = 1_000_000_000_000
	hundredB  = 100_000_000_000
	tenB      = 10_000_000_000
	oneB      = 1_000_000_000
	hundredM  = 100_000_000
	finalized = 200_000_000_000_000
)

// words are what a line of testdata may name, beside places: weights of digits, times, pauses,
// and what derives ids.
var words = map[string]any{
	"trillion": trillion, "hundredB": hundredB, "tenB": tenB, "oneB": oneB, "hundredM": hundredM, "finalized": finalized,
	"hour": hour, "nap": pauses["nap"], "order": order, "wake": wake, "again": again,
	"leg1": collation.Leg1GUID, "request": collation.RequestGUID, "response": collation.ResponseGUID,
	"outcome": collation.OutcomeGUID, "operator": collation.OperatorGUID, "interrupt": collation.InterruptGUID, "signalled": collation.SignalledGUID,
	"start": journal.JobID.Start,
	"pause": func(request journal.GUID, kind journal.PauseKind, name, position string) journal.GUID {
		return collation.PauseGUID(request, journal.PauseRef{Kind: kind, Name: name, Position: position})
	},
	"child": func(request journal.GUID, name, position string) journal.JobID {
		return collation.NamedChild(request, journal.PauseRef{Kind: journal.PauseChild, Name: name, Position: position})
	},
	"first": func(s journal.Sums) journal.Sums { return s[:len(journal.Sum{})] },
	"put": func(body []byte, old, by string) []byte {
		return bytes.Replace(body, []byte(old), []byte(by), 1)
	},
}

// again copies an entry, as far as a line changes it.
func again(e *journal.Entry) *journal.Entry {
	x := *e
	if e.Effect != nil {
		effect := *e.Effect
		x.Effect = &effect
	}
	return &x
}

// changed does what the lines say. The main chain's entries are 1, 2, …, those of the first chain
// of effects e1, e2, …, together they are all; header and Records are the journal's, and Rows,
// Waits, … its tables.
func changed(j *replaytest.Journal, entries *[]*journal.Entry, lines string) {
	e := edit.Editor{Names: words, Root: func(name string) any {
		effects := 0
		for effects < len(*entries) && (*entries)[effects].Chain.IsZero() {
			effects++
		}
		of, isEffect := strings.CutPrefix(name, "e")
		switch n, err := strconv.Atoi(of); {
		case err == nil && isEffect:
			return (*entries)[effects+n-1]
		case err == nil:
			return (*entries)[n-1]
		case name == "all":
			return entries
		case name == "header":
			return &j.Header
		case name == "Records":
			return &j.Records
		}
		return edit.Field(j.Stored, name)
	}}
	e.Do(lines)
	rows := map[journal.GUID]collation.Row{}
	for _, r := range j.Stored.Rows {
		rows[r.GUID] = r
	}
	j.Stored.Rows = rows
}

// ids are left out of what the files expect.
var ids = regexp.MustCompile(`[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}([0-9a-f]{32})?`)

// found is what a report says: the first violation, then those of the other checks.
func found(r *replay.Report) string {
	if r.First == nil {
		return "clean\n"
	}
	lines := []string{r.First.String()}
	for _, c := range r.Checks {
		if c.Violation != nil && c.Check != r.First.Check {
			lines = append(lines, c.Violation.String())
		}
	}
	return ids.ReplaceAllString(strings.Join(lines, "\n"), "…") + "\n"
}

// requireFiles runs the files of a folder of testdata. Each command names one of journals.txt, and
// expects what Verify finds once the lines have changed it.
//
//	lie     changes entries, and computes all hashes anew; with the argument tables, Verify sees the tables, too
//	tables  changes the tables only: the entries alone stay clean
//	bytes   changes records; the argument reseal computes hashes anew
func requireFiles(t *testing.T, folder string) {
	datadriven.Walk(t, filepath.Join("testdata", folder), func(t *testing.T, path string) {
		t.Parallel()
		datadriven.RunTest(t, path, told)
	})
}

func told(t *testing.T, d *datadriven.TestData) string {
	j := made(d.CmdArgs[0].Key).Clone()
	entries := j.Entries()
	requireClean(t, j, d.Cmd == "tables")
	switch d.Cmd {
	case "tables":
		changed(j, &entries, d.Input)
		require.Nil(t, j.Verify(false).First)
	case "bytes":
		changed(j, &entries, d.Input)
		if d.HasArg("reseal") {
			j.Reseal()
		}
		require.Equal(t, found(j.Verify(false)), found(j.Verify(true)))
	case "lie":
		j = j.Lie(func(entries []*journal.Entry) []*journal.Entry {
			before := len(entries)
			changed(j, &entries, d.Input)
			if len(entries) != before {
				return shorten(entries)
			}
			return entries
		})
		r := j.Verify(d.HasArg("tables"))
		require.Equal(t, r.First, r.Broken)
		if text := found(r); strings.HasPrefix(text, "V17") && strings.Count(text, "\n") == 1 {
			bare := j.Clone()
			bare.Attachments.Definition = nil
			require.Nil(t, bare.Verify(false).First, "nothing else finds what the flow gives")
		}
		return found(r)
	}
	return found(j.Verify(true))
}

// shorten renumbers the chains of effects and what binds them.
func shorten(entries []*journal.Entry) []*journal.Entry {
	n := make(map[journal.GUID]int64)
	for _, e := range entries {
		if !e.Chain.IsZero() {
			n[e.Chain]++
			e.Seq = n[e.Chain]
		}
	}
	for _, e := range entries {
		if e.Bound != nil {
			e.Bound.Head.Seq = n[e.Bound.Chain]
		}
	}
	return entries
}

// A forger who computes all hashes anew is found by the law that the lie breaks, and by no other
// check, but for V17, which knows the flow (2.5, J11).
func TestLiesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	requireFiles(t, "lies")
}

// Each change of stored bytes is found at its entry by exactly its check (2.5, J11).
func TestCorruptBytesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	requireFiles(t, "bytes")
}

// The tables are compared with the entries: a row that is stored but not dispatched, a digit that
// should not be there (J1). What is on its way to a job has a row before any entry mentions it.
func TestCorruptTablesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	requireFiles(t, "tables")
}
