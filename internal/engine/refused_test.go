package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

const nobodyFlow = `
flow: nobody
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: nobody}
transitions: {start: [work]}
`

// refusedRows counts the rows of the jobs whose last message was refused.
func (r *rig) refusedRows(ids []journal.JobID) (n int) {
	for _, id := range ids {
		for _, row := range r.view(id).Rows {
			if row.Publication > 0 && row.TurnSent == collation.NoTurn {
				n++
			}
		}
	}
	return n
}

// soon waits, on the bubble's clock, until something is so.
func (r *rig) soon(within time.Duration, is func() bool, what string) {
	r.t.Helper()
	for deadline := time.Now().Add(within); !is(); time.Sleep(10 * time.Millisecond) {
		require.True(r.t, time.Now().Before(deadline), what)
	}
}

// unserved starts jobs whose requests nobody takes, more than the bus has room for.
func unserved(t *testing.T, jobs, room int) (*rig, []journal.JobID) {
	r := start(t, engine.Config{}, membus.Config{MaxMessages: room}, nil, workers.New())
	r.deploy(nobodyFlow)
	var ids []journal.JobID
	for n := range jobs {
		ids = append(ids, r.publish("nobody", fmt.Sprintf("k%d", n), "{}"))
	}
	return r, ids
}

// T5: the row of a message that the bus has refused says so, and sends it soon after there is room.
func TestT5RefusedMessagesWaitInTheirRows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, ids := unserved(t, 100, 40)
		r.soon(time.Second, func() bool { return r.refusedRows(ids) == 60 }, "the rows do not say that their messages were refused")
		time.Sleep(10 * time.Minute)
		require.Equal(t, 60, r.refusedRows(ids), "however often they were tried")
		require.Equal(t, 40, r.bus.Len(transport.ToWork("nobody")))
		came := map[[16]byte]bool{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		all := make(chan struct{})
		go func() {
			ended <- r.bus.Consume(ctx, transport.ToWork("nobody"), 1, func(d transport.Delivery) {
				_ = d.Ack()
				if came[d.Message().Header.GUID] = true; len(came) == len(ids) {
					cancel()
					close(all)
				}
			})
		}()
		began := time.Now()
		<-all
		require.Less(t, time.Since(began), 10*time.Second)
		require.NoError(t, <-ended)
	})
}

// T1: requests of jobs that have ended leave the bus, also where nobody serves their topic. Those of
// open jobs stay, once each, however long nobody comes.
func TestT1RequestsOfEndedJobsLeaveTheBus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, ids := unserved(t, 50, 1000)
		to := transport.ToWork("nobody")
		r.soon(time.Second, func() bool { return r.bus.Len(to) == len(ids) }, "not all were sent")
		for i, id := range ids[10:] {
			r.interrupt(id, collation.InterruptOrder{Code: 410, Reason: "no more"}, fmt.Sprintf("i%d", i))
		}
		r.soon(time.Minute, func() bool { return r.bus.Len(to) == 10 }, "requests of ended jobs stay")
		time.Sleep(2 * time.Hour)
		require.LessOrEqual(t, r.bus.Len(to), 10, "copies that were sent again stay")
		require.Positive(t, r.bus.Len(to))
	})
}
