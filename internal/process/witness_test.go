package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// leftOf is a mark of a beat in NATS. Those of a beat below 0 do not verify.
func leftOf(seq uint64, space byte, beat int64, age time.Duration) leftMark {
	m := leftMark{Attestation: nats.Attestation{Seq: seq, Age: age}, mark: markOf(space, beat)}
	if beat < 0 {
		m.mark, m.Err = store.Mark{}, transport.ErrForged
	}
	return m
}

func markOf(space byte, beat int64) store.Mark {
	return store.Mark{Space: journal.GUID{space}, Epoch: 1, Beat: beat}
}

// S13: the newest mark of the space that verifies counts, wherever it stands. An engine takes away what
// its own outgrows and what has not verified for long, and never what is newer.
func TestOrderOfTheMarksInNATS_S13(t *testing.T) {
	t.Parallel()
	left := []leftMark{
		leftOf(1, 1, 7, time.Hour), leftOf(2, 1, 9, time.Minute), leftOf(3, 2, 99, 0), leftOf(4, 1, 8, 0),
		leftOf(5, 0, -1, 0), leftOf(6, 0, -1, strangeMark), leftOf(7, 1, 9, 0),
	}
	require.Equal(t, 1, newestMark(left, journal.GUID{1}))
	require.Equal(t, -1, newestMark(left, journal.GUID{3}))
	require.Equal(t, []uint64{1, 3, 4, 6}, outgrown(left, markOf(1, 8), strangeMark))
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, outgrown(left, markOf(1, 9), 0))
}

// S13: a mark that was published again is known from one that an engine leaves late.
func TestMarksOfStrangers_S13(t *testing.T) {
	t.Parallel()
	var s marksSeen
	now := time.Now()
	require.Len(t, s.strangers([]leftMark{leftOf(1, 1, 5, 0), leftOf(2, 0, -1, 0)}), 1, "the one that does not verify")
	require.Empty(t, s.strangers([]leftMark{leftOf(2, 0, -1, 0)}), "it was told")
	s.settle(markOf(1, 10), now)
	s.settle(markOf(1, 20), now.Add(lateMark-time.Second))
	require.Empty(t, s.strangers([]leftMark{leftOf(3, 1, 9, 0)}), "it may be late")
	s.settle(markOf(1, 21), now.Add(lateMark))
	require.Empty(t, s.strangers([]leftMark{leftOf(4, 1, 10, 0)}), "so may this one be")
	require.Len(t, s.strangers([]leftMark{leftOf(5, 1, 9, 0), leftOf(4, 1, 10, 0)}), 1, "older than what was there so long ago")
}
