package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// S13, T4: where a database was accepted, one process follows up to a second before another. What it
// sends in the new epoch is not lost on one that is about to follow: a response has no row that would
// send it again soon. What was sent in an epoch before, or seems to be of one that never comes, is
// acked.
func TestS13MessagesOfTheNextEpochWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, workers.New())
		epoch := r.eng.Publisher().Epoch.Load()
		nobody := journal.JobID{1, 6: 0x80, 8: 0x80}
		send := func(epoch int64, publication int) {
			h := wire.Hint{Kind: journal.MessageLeg1, Job: nobody.String(), Row: nobody.String(), Activity: "a", DAD: ",0"}
			require.NoError(t, transporttest.Publish(context.Background(), r.bus, transport.Message{
				To: transport.ToLane(0), Header: transport.Header{
					GUID: nobody, Publication: publication, Epoch: epoch,
				}, Body: wire.Encode(&h),
			}))
		}
		send(epoch+1, 1)
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, 1, r.bus.Len(transport.ToLane(0)))
		r.eng.Committer().Recovered(epoch + 1)
		time.Sleep(time.Minute)
		require.Len(t, r.letters(), 1, "it was handled: its job is not here")
		send(epoch, 2)
		send(epoch+5, 3)
		time.Sleep(time.Minute)
		require.Zero(t, r.bus.Len(transport.ToLane(0)))
		require.Len(t, r.letters(), 1)
	})
}
