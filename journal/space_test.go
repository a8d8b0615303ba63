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
	for body, e := range map[string]journal.SpaceEntry{
		`{"at":1,"build":"b","facts":{"login":"pay","role":"worker","topics":"a b"},"kind":"granted","login":"l","v":1,"who":"w"}`:      {Kind: journal.SpaceGranted, Facts: map[string]string{"role": "worker", "login": "pay", "topics": "a b"}},
		`{"at":1,"build":"b","facts":{"login":"pay","role":"engine","topics":""},"kind":"revoked","login":"l","v":1,"who":"w"}`:         {Kind: journal.SpaceRevoked, Facts: map[string]string{"role": "engine", "login": "pay", "topics": ""}},
		`{"at":1,"build":"b","facts":{"holds":"1h0m0s","name":"shop","role":"client"},"kind":"token-made","login":"l","v":1,"who":"w"}`: {Kind: journal.SpaceTokenMade, Facts: map[string]string{"name": "shop", "role": "client", "holds": "1h0m0s"}},
		`{"at":1,"build":"b","facts":{"name":"shop"},"kind":"token-revoked","login":"l","v":1,"who":"w"}`: {
			Kind: journal.SpaceTokenRevoked, Facts: map[string]string{"name": "shop"},
		},
		`{"at":1,"build":"b","facts":{"key":"2","others":"hold for 0s"},"kind":"key-added","login":"l","v":1,"who":"w"}`:                                    {Kind: journal.SpaceKeyAdded, Facts: map[string]string{"key": "2", "others": "hold for 0s"}},
		`{"at":1,"build":"b","facts":{"messages":"unsigned"},"kind":"signing","login":"l","v":1,"who":"w"}`:                                                 {Kind: journal.SpaceSigning, Facts: map[string]string{"messages": "unsigned"}},
		`{"at":1,"build":"b","facts":{"before":"1","epoch":"2","lost":"none","starts":"","why":"promoted"},"kind":"recovered","login":"l","v":1,"who":"w"}`: {Kind: journal.SpaceRecovered, Facts: map[string]string{"why": "promoted", "before": "1", "epoch": "2", "lost": "none", "starts": ""}},
		`{"at":1,"build":"b","facts":{"processes":"stop"},"kind":"on-promotion","login":"l","v":1,"who":"w"}`:                                               {Kind: journal.SpacePromotion, Facts: map[string]string{"processes": "stop"}},
		`{"at":1,"build":"b","facts":{"after":"never"},"kind":"expire","login":"l","v":1,"who":"w"}`: {
			Kind: journal.SpaceExpire, Facts: map[string]string{"after": "never"},
		},
		`{"at":1,"build":"b","facts":{"active":"yes","digest":"d","flow":"order","version":"2"},"kind":"deployed","login":"l","v":1,"who":"w"}`: {
			Kind:  journal.SpaceDeployed,
			Facts: map[string]string{"flow": "order", "version": "2", "digest": "d", "active": "yes"},
		},
		`{"at":1,"build":"b","facts":{"before":"2","flow":"order","version":"1"},"kind":"activated","login":"l","v":1,"who":"w"}`: {
			Kind: journal.SpaceActivated, Facts: map[string]string{"flow": "order", "version": "1", "before": "2"},
		},
		`{"at":1,"build":"b","facts":{},"kind":"private-keys","login":"l","v":1,"who":"w"}`: {
			Kind: journal.SpacePrivateKeys, Facts: map[string]string{},
		},
	} {
		e.At, e.Who, e.Login, e.Build = 1, "w", "l", "b"
		got, err := journal.EncodeSpace(&e)
		require.NoError(t, err)
		require.Equal(t, body, string(got))
		again, err := journal.DecodeSpace(got)
		require.NoError(t, err)
		require.Equal(t, &e, again)
	}
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
