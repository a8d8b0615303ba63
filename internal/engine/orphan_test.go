package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

func (r *rig) letters() []store.DeadView {
	r.t.Helper()
	out, err := r.store.DeadLetters(context.Background(), store.DeadFilter{All: true, Limit: 100})
	require.NoError(r.t, err)
	return out
}

// hint puts a message on the bus, as any engine might have sent it.
func (r *rig) hint(to transport.Destination, h wire.Hint) {
	r.t.Helper()
	r.hints++
	g, err := journal.ParseGUID(h.Row)
	require.NoError(r.t, err)
	require.NoError(r.t, transporttest.Publish(context.Background(), r.bus, transport.Message{
		To: to, Header: transport.Header{GUID: g, Publication: r.hints, Epoch: r.eng.Publisher().Epoch.Load()},
		Body: wire.Encode(&h),
	}))
}

// T3, C5: a message of a job that never existed becomes a dead letter; a start whose order was
// cancelled does not.
func TestT3MessagesWithoutAJob(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, workers.New())
		nobody := journal.JobID{1, 6: 0x80, 8: 0x80}
		h := wire.Hint{Job: nobody.String(), Row: nobody.String(), DAD: ",0"}
		n := 0 // number of dead letters
		for _, kind := range []journal.MessageKind{
			journal.MessageOutcome, journal.MessageWakeUp, journal.MessageCycle, journal.MessageLeg1,
		} {
			h.Kind, h.Activity = kind, "a"
			r.hint(transport.ToLane(0), h)
			time.Sleep(time.Minute) // the bubble's clock
			n++
			require.Len(t, r.letters(), n, "%s", kind)
			require.Equal(t, "foreign", r.letters()[0].Letter.Reason)
		}
		h.Kind, h.Activity, h.Flow, h.Version = journal.MessageStart, "start", "order", "1"
		r.hint(transport.ToStart(), h)
		time.Sleep(time.Minute)
		require.Len(t, r.letters(), n+1, "a job's own start comes after its inception")
		h.Activity, h.Flow, h.Version = "", "", ""
		r.hint(transport.ToStart(), h)
		for _, kind := range []journal.MessageKind{journal.MessageSignal, journal.MessageInterrupt} {
			h.Kind = kind
			r.hint(transport.ToLane(0), h)
		}
		time.Sleep(time.Minute)
		require.Len(t, r.letters(), n+1, "a child's order can be taken back, or refused, a signal be delivered")
		require.Zero(t, r.bus.Len(transport.ToStart())+r.bus.Len(transport.ToLane(0)))
	})
}
