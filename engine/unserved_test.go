package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
)

// A topic with requests that nobody took is warned about once in ten minutes, if no living
// process has a handler for it.
func TestUnservedTopicsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		st := memory.New(memory.Config{Space: "test"})
		_, err := st.OpenSession(t.Context(), store.Process{Name: "w", Topics: []string{"served"}, Lease: time.Hour})
		require.NoError(t, err)
		said := &lines{}
		e := &Engine{cfg: Config{Store: st, Logger: said.logger()}}
		sent := func(topic string) store.DueRow {
			return store.DueRow{Kind: journal.MessageRequest, Topic: topic, Publication: 1, Turn: 1, TurnSent: 1}
		}
		fresh, next := sent("fresh"), sent("next")
		fresh.Publication, fresh.TurnSent = 0, 0 // not sent yet
		next.Turn = 2                            // nor this turn of it
		due := []store.DueRow{
			fresh, next, sent("served"), sent("nobody"), sent("nobody"), {Kind: journal.MessageLeg1, Topic: "leg1", Publication: 1},
		}
		var u unserved
		for range 20 * 60 { // twenty minutes
			u.look(t.Context(), e, due)
			time.Sleep(time.Second)
		}
		require.Len(t, said.all, 2)
		require.Contains(t, said.all[0], "topic=nobody")
		require.Contains(t, said.all[1], "topic=nobody")
	})
}
