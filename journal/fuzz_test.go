package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// FuzzLedger: a ledger has one spelling, 15 digits (1.2).
func FuzzLedger(f *testing.F) {
	for _, seed := range []string{"101100000000001", "201100000000003", "000000000000000", "999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := journal.ParseLedger(s)
		if err != nil {
			require.ErrorIs(t, err, journal.ErrLedger)
			require.Zero(t, l)
			require.Less(t, len(err.Error()), 300, "a foreign text is not repeated at length")
			return
		}
		require.Equal(t, s, l.String())
		require.True(t, l >= 0 && l < journal.MaxLedger)
	})
}

// FuzzID: GUIDs, job ids and digests have one spelling each, and none reads as another.
func FuzzID(f *testing.F) {
	f.Add("7a31c5f0-1b2c-8d3e-9f40-0123456789ab")
	f.Add("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f.Fuzz(func(t *testing.T, s string) {
		g, gone := journal.ParseGUID(s)
		j, lost := journal.ParseJobID(s)
		d, err := journal.ParseDigest(s)
		require.Equal(t, gone == nil, lost == nil)
		require.Equal(t, [16]byte(g), [16]byte(j))
		require.False(t, gone == nil && err == nil)
		for _, x := range []struct {
			text string
			err  error
		}{{g.String(), gone}, {j.String(), lost}, {d.String(), err}} {
			if x.err == nil {
				require.Equal(t, s, x.text)
				continue
			}
			require.ErrorIs(t, x.err, journal.ErrMalformedID)
			require.Less(t, len(x.err.Error()), 500)
		}
	})
}

// FuzzDecodeTrusted: bytes of the trusted store that were changed after all are an entry or an
// error (F17). If they are canonical, the entry is the one that a verifier reads.
func FuzzDecodeTrusted(f *testing.F) {
	f.Add(journal.Encode(full()))
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := journal.Record{Job: journal.JobID{1}, Seq: 2, Body: text}
		trusted, err := journal.DecodeTrusted(r)
		strict, refused := journal.Decode(r)
		if err != nil {
			require.Nil(t, trusted)
			require.Error(t, refused, "what is canonical is trusted")
			return
		}
		if refused == nil {
			require.Equal(t, strict, trusted)
			return
		}
		require.ErrorIs(t, refused, journal.ErrNotCanonical, "version, kind and fields are known")
	})
}
