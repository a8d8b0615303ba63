package replay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// spaceChain is a lawful chain of n entries.
func spaceChain(t *testing.T, n int) *replay.SpaceChain {
	t.Helper()
	c := &replay.SpaceChain{Name: "shop", ID: journal.GUID{1}}
	c.Head.Hash = journal.SpaceGenesis(c.Name, c.ID)
	for range n {
		body, err := journal.EncodeSpace(&journal.SpaceEntry{
			Kind: journal.SpaceAccepted, At: 5, Who: "ann", Login: "app", Facts: map[string]string{"check": "fsync-off", "value": "off"},
		})
		require.NoError(t, err)
		c.Head = journal.Head{Seq: c.Head.Seq + 1, Hash: journal.Next(c.Head.Hash, body)}
		c.Entries = append(c.Entries, journal.Record{Seq: c.Head.Seq, Body: body, Hash: c.Head.Hash})
	}
	return c
}

// S7: the chain of a space is held to the laws of chains, and each break is found by its check.
func TestVerifySpace_S7(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3} {
		r := replay.VerifySpace(spaceChain(t, n))
		require.False(t, r.Violated())
		require.Equal(t, n, r.Entries)
	}
	for check, spoil := range map[replay.Check]func(*replay.SpaceChain){
		replay.V1: func(c *replay.SpaceChain) { c.Entries = append(c.Entries[:1], c.Entries[2]) },
		replay.V2: func(c *replay.SpaceChain) {
			c.Entries[0].Body = []byte(strings.Replace(string(c.Entries[0].Body), "ann", "bob", 1))
		},
		replay.V3:  func(c *replay.SpaceChain) { c.Entries = c.Entries[:2] },
		replay.V16: func(c *replay.SpaceChain) { c.Entries[1].Body = append(c.Entries[1].Body, ' ') },
	} {
		c := spaceChain(t, 3)
		spoil(c)
		r := replay.VerifySpace(c)
		require.True(t, r.Violated(), "%s", check)
		for _, got := range r.Checks {
			if got.Check == check {
				require.Equal(t, replay.Violated, got.Status, "%s", check)
			}
		}
	}
}
