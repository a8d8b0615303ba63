package journal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/journal"
)

// TestIdentifiersHaveOneSpelling: entries compare ids as text, so each has one form (C8).
func TestIdentifiersHaveOneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawn[journal.GUID]().Draw(t, "guid")
		back, err := journal.ParseGUID(g.String())
		require.NoError(t, err)
		require.Equal(t, g, back)
		job, err := journal.ParseJobID(g.String())
		require.NoError(t, err)
		require.Equal(t, g, job.Start())
		require.Equal(t, g.String(), job.String())
		d := drawn[journal.Digest]().Draw(t, "digest")
		again, err := journal.ParseDigest(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
	text := "0123abcd-4567-89ef-0123-456789abcdef"
	for _, bad := range []string{
		"", strings.ToUpper(text), text + "0", text[:35], strings.ReplaceAll(text, "-", "_"),
		strings.ReplaceAll(text, "-", ""), "0123abcd4-567-89ef-0123-456789abcdef", "{" + text[1:35] + "}",
	} {
		_, err := journal.ParseGUID(bad)
		require.ErrorIs(t, err, journal.ErrMalformedID, "%q", bad)
		_, err = journal.ParseJobID(bad)
		require.ErrorIs(t, err, journal.ErrMalformedID, "%q", bad)
	}
	for _, bad := range []string{"", strings.Repeat("0", 63), strings.Repeat("A", 64), strings.Repeat("g", 64)} {
		_, err := journal.ParseDigest(bad)
		require.ErrorIs(t, err, journal.ErrMalformedID, "%q", bad)
	}
}

func TestZeroIdentifiers(t *testing.T) {
	t.Parallel()
	require.True(t, journal.GUID{}.IsZero())
	require.True(t, journal.JobID{}.IsZero())
	require.True(t, journal.Digest{}.IsZero())
	require.False(t, journal.GUID{15: 1}.IsZero())
	require.False(t, journal.JobID{15: 1}.IsZero())
	require.False(t, journal.Digest{31: 1}.IsZero())
	require.True(t, journal.MainChain.IsZero())
}

func TestLedgerText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawn[journal.Ledger]().Draw(t, "ledger")
		require.Len(t, l.String(), journal.LedgerDigits)
		back, err := journal.ParseLedger(l.String())
		require.NoError(t, err)
		require.Equal(t, l, back)
	})
	require.Equal(t, "201100000000001", journal.Ledger(201_100_000_000_001).String())
	for _, bad := range []string{"", "1", strings.Repeat("0", 16), "00000000000000x", "-00000000000001", " 00000000000001"} {
		_, err := journal.ParseLedger(bad)
		require.ErrorIs(t, err, journal.ErrLedger, "%q", bad)
	}
}

// TestClosedStates: a quarantined job has not ended (C16).
func TestClosedStates(t *testing.T) {
	t.Parallel()
	for state, closed := range map[journal.JobState]bool{
		journal.JobOpen: false, journal.JobQuarantined: false, journal.JobCompleted: true,
		journal.JobFailed: true, journal.JobInterrupted: true, journal.JobExpired: true,
	} {
		require.Equal(t, closed, state.Closed(), "%s", state)
	}
}
