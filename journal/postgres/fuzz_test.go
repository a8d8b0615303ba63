package postgres

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzPauses: the column of a row reads as it was written, or as corrupt, whatever happened to
// its bytes (F17).
func FuzzPauses(f *testing.F) {
	f.Add(encodePauses([]collation.Pause{
		{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: "1"}, GUID: journal.GUID{1}},
		{
			PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "ok", Position: "2.0.1"}, GUID: journal.GUID{2},
			Timeout: true, Came: true,
		},
	}))
	f.Add([]byte(`[]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		pauses, err := decodePauses(append([]byte{}, b...)) // NULL is none
		if err != nil {
			require.ErrorIs(t, err, errCorrupt)
			require.Nil(t, pauses)
			return
		}
		require.NotEmpty(t, pauses, "where there are none, the column is NULL")
		require.Equal(t, string(b), string(encodePauses(pauses)))
	})
}

// FuzzEffectRow: an effect's row is read or corrupt; its error is written back as it was read.
func FuzzEffectRow(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"), []byte("charge"), []byte(`{"id":1}`), encodeFailure(&journal.Failure{Class: "x", Message: "m", Data: []byte(`[1]`), Stack: "s"}),
		int64(3))
	f.Add([]byte{}, []byte{}, []byte(nil), []byte(`{`), int64(0))
	f.Fuzz(func(t *testing.T, key, text, result, failure []byte, fence int64) {
		v := row{
			key, text, text, pInt(1), []byte("completed"), result, append([]byte{}, failure...), pInt(fence), text, pBool(true),
			text, pBool(false),
		}
		require.Len(t, v, effectWidth)
		x, err := readEffect(v)
		if err != nil {
			require.ErrorIs(t, err, errCorrupt)
			return
		}
		require.Equal(t, fence, x.Fence)
		require.True(t, x.Live && !x.Vouched)
		if x.Error.Data != nil && !json.Valid(x.Error.Data) {
			t.Fatalf("data that is no JSON: %q", x.Error.Data)
		}
		v[6] = encodeFailure(x.Error)
		again := must(readEffect(v))(t)
		require.Equal(t, x.Error.Message, again.Error.Message)
	})
}

// FuzzEntryBody: the body of a stored entry is an entry, or corrupt, with the name of its job.
func FuzzEntryBody(f *testing.F) {
	f.Add(journal.Encode(&journal.Entry{Kind: journal.KindStale, Seq: 1, Job: journal.JobID{7}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		job := journal.JobID{7, 6: 0x80}
		e, err := decode(job, body)
		if err != nil {
			require.ErrorIs(t, err, errCorrupt)
			require.ErrorContains(t, err, job.String())
			require.Nil(t, e)
		}
	})
}

// FuzzColumn: an array parameter has the length in its header, and so has each element.
func FuzzColumn(f *testing.F) {
	f.Add([]byte("text"), int64(-1), true)
	f.Fuzz(func(t *testing.T, b []byte, n int64, null bool) {
		text, number := texts(2), ints(2)
		text.text(string(b))
		number.int(n)
		if null {
			text.null()
			number.null()
		} else {
			text.bytes(b)
			number.someInt(n)
		}
		for _, c := range [][]byte{text.value(), number.value()} {
			require.EqualValues(t, 2, row{c[12:16]}.int(0), "elements")
			rest, seen := c[arrayHeader:], 0
			for ; len(rest) > 0; seen++ {
				length := row{rest[:4]}.int(0)
				rest = rest[4:]
				if length >= 0 {
					rest = rest[length:]
				}
			}
			require.Equal(t, 2, seen)
		}
		require.Equal(t, n, row{pInt(n)}.int(0))
	})
}

// FuzzCursor: a cursor of a list is one that a listed job has, or refused.
func FuzzCursor(f *testing.F) {
	f.Add(spot{1_700_000_000_000_000, journal.JobID{7}}.cursor(), int64(5))
	f.Add("123", int64(-1))
	f.Add(".", int64(0))
	f.Fuzz(func(t *testing.T, s string, started int64) {
		p, err := spotOf(s)
		if err != nil {
			require.ErrorIs(t, err, store.ErrRejected)
			require.Less(t, len(err.Error()), 600)
			return
		}
		for _, want := range []spot{p, {collation.Micros(started), p.id}} {
			require.Equal(t, want, must(spotOf(want.cursor()))(t))
		}
	})
}
