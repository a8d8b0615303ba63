package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// waiting is a delivery that counts how often it was reported as in progress.
type waiting struct {
	transport.Delivery
	kept atomic.Int32
}

func (d *waiting) InProgress() error { d.kept.Add(1); return nil }
func (d *waiting) Ack() error        { return nil }

// W8: what an engine has not finished when it ends comes to another one, however long its process
// lives on.
func TestW8AnEndedEngineKeepsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKeeping(time.Second)
		left, late := &waiting{}, &waiting{}
		k.add(left)
		time.Sleep(2*time.Second + time.Millisecond) // the bubble's clock
		k.end()
		require.NoError(t, k.add(late).Ack())
		k.add(late)
		time.Sleep(2 * keepFor)
		require.EqualValues(t, 2, left.kept.Load())
		require.Zero(t, late.kept.Load())
	})
}

// W8: a delivery that waits for its batch is reported as in progress, until it is finished or
// has waited too long.
func TestW8DeliveriesThatWaitAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKeeping(time.Second)
		waits, forgotten := &waiting{}, &waiting{}
		in := k.add(waits)
		k.add(forgotten)
		time.Sleep(5*time.Second + time.Millisecond) // the bubble's clock
		require.EqualValues(t, 5, waits.kept.Load())
		require.NoError(t, in.Ack())
		time.Sleep(2 * keepFor)
		require.EqualValues(t, 5, waits.kept.Load())
		require.EqualValues(t, keepFor/time.Second, forgotten.kept.Load())
		require.False(t, k.timer.Stop(), "nothing is held")
	})
}
