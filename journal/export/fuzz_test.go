package export

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// FuzzLine: a line of an export is a header, an entry, or refused; each has one
// spelling, and no line is both.
func FuzzLine(f *testing.F) {
	h, err := appendHeader(nil,
		&Header{Space: "s", Job: journal.JobID{1}, Generation: 1, Key: "o \"ü\" <1>", Head: journal.Head{Seq: 2}})
	require.NoError(f, err)
	f.Add(strings.TrimSuffix(string(h), "\n"))
	for _, rec := range []journal.Record{
		{Seq: 1, Body: []byte("{}")}, {Chain: journal.GUID{7}, Seq: 9223372036854775807, Body: nil},
	} {
		f.Add(strings.TrimSuffix(string(appendEntry(nil, &rec)), "\n"))
	}
	for _, x := range []journal.Attachment{
		{Definition: true, Digest: journal.Digest{1}, Body: []byte("{}")}, {Digest: journal.Digest{2}},
	} {
		f.Add(strings.TrimSuffix(string(appendAttachment(nil, &x)), "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		header, refused := parseHeader([]byte(line))
		if refused == nil {
			again, err := appendHeader(nil, &header)
			require.NoError(t, err)
			require.Equal(t, line+"\n", string(again))
			require.LessOrEqual(t, len(header.Key), MaxKey)
		}
		rec, err := parseEntry([]byte(line))
		if err == nil {
			require.Error(t, refused)
			require.Equal(t, line+"\n", string(appendEntry(nil, &rec)))
			require.LessOrEqual(t, len(rec.Body), journal.MaxEntryBytes)
			require.Positive(t, rec.Seq)
		}
		x, wrong := parseAttachment([]byte(line))
		if wrong == nil {
			require.Error(t, refused)
			require.Error(t, err)
			require.Equal(t, line+"\n", string(appendAttachment(nil, &x)))
			require.True(t, isAttachment([]byte(line)))
		}
		require.Equal(t, refused == nil, refused == nil && isHeader([]byte(line)), "a reader takes it for what it is")
	})
}
