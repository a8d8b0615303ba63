package replay_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// bodies are the entries of a journal, one per line, each after the effect chain that it
// belongs to. No body has a line break.
func bodies(j *replaytest.Journal) []byte {
	var all [][]byte
	for i := range j.Records {
		line := j.Records[i].Body
		if g := j.Records[i].Chain; !g.IsZero() {
			line = append([]byte(g.String()+" "), line...)
		}
		all = append(all, line)
	}
	return bytes.Join(all, []byte("\n"))
}

// FuzzVerify: forged entries with fitting seqs and hashes are a journal, or give a report of
// what is wrong. Nothing panics, and two replays do not differ (V14). Each violation has a text
// and an entry that exists.
func FuzzVerify(f *testing.F) {
	for n, name := range []string{"twice", "raced", "joined", "suspended", "undone"} {
		f.Add(bodies(made(name)), n%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, decodeAnew bool) {
		j := forged(text, decodeAnew)
		if j == nil {
			return
		}
		r := j.Verify(false)
		again := j.Verify(false)
		require.Equal(t, r, again)
		for _, c := range r.Checks {
			require.False(t, c.Check == replay.V14 && c.Status == replay.Violated, "two replays differ: %v", c.Violation)
			if c.Violation != nil {
				require.NotEmpty(t, c.Violation.Message)
				require.True(t, c.Violation.Seq >= 0 && c.Violation.Seq <= int64(len(j.Records))+1)
			}
			require.Equal(t, c.Status == replay.Violated, c.Violation != nil, "%s", c.Check)
		}
		require.LessOrEqual(t, len(r.Open), r.OpenCount)
	})
}

// forged makes a journal of the lines, in the chains that they name, with fitting hashes; nil
// if there are too many. With anew, entries that can be decoded get the journal's job and are
// encoded again, so that changes get past the check of the spelling.
func forged(text []byte, anew bool) *replaytest.Journal {
	j := &replaytest.Journal{Header: made("twice").Header}
	seqs := map[journal.GUID]int64{}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(j.Records) == 300 {
			return nil
		}
		rec := journal.Record{Job: j.Header.Job, Body: line}
		if chain, body, named := bytes.Cut(line, []byte(" ")); named {
			if g, err := journal.ParseGUID(string(chain)); err == nil {
				rec.Chain, rec.Body = g, body
			}
		}
		seqs[rec.Chain]++
		rec.Seq = seqs[rec.Chain]
		if e, err := journal.Decode(rec); err == nil && anew {
			if e.Kind == journal.KindCreated {
				e.Space, e.Generation = j.Header.Space, j.Header.Generation
			}
			rec.Body = journal.Encode(e)
		}
		j.Records = append(j.Records, rec)
	}
	slices.SortStableFunc(j.Records, func(a, b journal.Record) int { return bytes.Compare(a.Chain[:], b.Chain[:]) })
	return j.Reseal()
}
