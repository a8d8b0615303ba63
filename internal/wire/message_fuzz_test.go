package wire

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzRecorded: a recorded response is sent out unchanged: recording the result of
// FromJournal gives the same.
func FuzzRecorded(f *testing.F) {
	f.Add([]byte(`{"kind":"terminal","code":200,"output":{"a":1e2}}`))
	f.Add([]byte(`{"kind":"failed","code":503,"error":{"class":"x","message":"m","data":[1.0],"stack":"s"}}`))
	f.Add([]byte(`{"kind":"terminal","code":200,"ref":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode[Response](b)
		if err != nil {
			return
		}
		recorded, err := r.Journal()
		if err != nil || recorded.Kind == journal.ResponseSuspended {
			return // a suspension is not sent out again
		}
		out := FromJournal(recorded)
		out.RetryAfterMS, out.Undone = r.RetryAfterMS, r.Undone // these belong to the request, not to its outcome
		again, err := out.Journal()
		require.NoError(t, err)
		require.Equal(t, recorded, again)
	})
}

// FuzzSuspension: a suspension is refused, or keeps every limit, has no name twice and
// fits an entry (E12).
func FuzzSuspension(f *testing.F) {
	f.Add([]byte(`{"kind":"suspended","code":200,"pauses":[{"kind":"sleep","name":"nap","position":"1","for_us":5},{"kind":"signal","name":"ok","position":"2","topic":"t","key":"k"}]}`))
	f.Add([]byte(`{"kind":"suspended","code":200,"pauses":[{"kind":"child","name":"bill","position":"3.0.1","flow":"invoice","key":"b","input":{"b":1.0,"a":2}}]}`))
	f.Add([]byte(`{"kind":"suspended","code":200,"pauses":[{"kind":"sleep","name":"n","position":"1"},{"kind":"sleep","name":"n","position":"2"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode[Response](b)
		if err != nil {
			return
		}
		r.Kind = journal.ResponseSuspended
		recorded, err := r.Journal()
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, collation.CodeOK, recorded.Code)
		require.LessOrEqual(t, len(recorded.Pauses), MaxPauses)
		seen := map[journal.PauseRef]bool{}
		for i := range recorded.Pauses {
			p := &recorded.Pauses[i]
			id := journal.PauseRef{Kind: p.Kind, Name: p.Name}
			require.False(t, seen[id])
			seen[id] = true
			require.NotEmpty(t, p.Name)
			require.True(t, len(p.Name) <= MaxPauseName && len(p.Position) <= MaxPosition && p.For >= 0)
		}
		again, err := journal.DecodeResponse(journal.EncodeResponse(recorded))
		require.NoError(t, err)
		require.Equal(t, recorded, again)
	})
}

// FuzzCutText: any text of a handler becomes a valid error text, and a valid text stays
// unchanged.
func FuzzCutText(f *testing.F) {
	f.Add("plain ü")
	f.Add("a\x00b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, long := range []string{s, s + string(make([]byte, MaxText)), string(make([]byte, MaxText-1)) + s} {
			cut := CutText(long)
			require.LessOrEqual(t, len(cut), MaxText)
			require.True(t, plain(cut))
			require.Equal(t, cut, CutText(cut))
		}
		if len(s) <= MaxText && utf8.ValidString(s) && plain(s) {
			require.Equal(t, s, CutText(s))
		}
	})
}
