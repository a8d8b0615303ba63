package journal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// acceptedBody is the golden spelling of an entry of a space's chain.
const acceptedBody = `{"at":1700000000000000,"build":"v1","facts":{"check":"fsync-off","value":"off"},"kind":"accepted","login":"app","v":1,"who":"ann"}`

// S7: an entry of a space's chain has one spelling, and its genesis is that of its space alone.
func TestSpaceEntry_S7(t *testing.T) {
	t.Parallel()
	e := &journal.SpaceEntry{
		Kind: journal.SpaceAccepted, At: 1_700_000_000_000_000, Who: "ann", Login: "app", Build: "v1",
		Facts: map[string]string{"check": "fsync-off", "value": "off"},
	}
	body, err := journal.EncodeSpace(e)
	require.NoError(t, err)
	require.Equal(t, acceptedBody, string(body))
	again, err := journal.DecodeSpace(body)
	require.NoError(t, err)
	require.Equal(t, e, again)
	require.Equal(t, "68e5", journal.SpaceGenesis("shop", journal.GUID{1}).String()[:4])

	for want, change := range map[string]func(*journal.SpaceEntry){
		"unknown entry kind":  func(e *journal.SpaceEntry) { e.Kind = "whim" },
		"unknown entry field": func(e *journal.SpaceEntry) { e.Facts = map[string]string{"check": "a", "valve": "b"} },
		"the limit is 4096":   func(e *journal.SpaceEntry) { e.Who = strings.Repeat("a", journal.MaxSpaceText+1) },
	} {
		x := *e
		change(&x)
		_, err := journal.EncodeSpace(&x)
		require.ErrorContains(t, err, want)
	}
}

// FuzzDecodeSpace: what is read has one spelling.
func FuzzDecodeSpace(f *testing.F) {
	f.Add([]byte(acceptedBody))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := journal.DecodeSpace(body)
		if err != nil {
			return
		}
		again, err := journal.EncodeSpace(e)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
	})
}
