package quiputest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// outside is where handlers find their receivers: in a world, or nowhere.
type outside interface {
	Receiver(name string) *quiputest.Receiver
}

type nowhere struct{}

func (nowhere) Receiver(string) *quiputest.Receiver { return new(quiputest.Receiver) }

// J12, E15: recorded runs are replayed with the same code, however they ended, and nothing
// outside is called.
func TestE15ReplayJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(insurance)
		w.Serve(trip(w))
		done, declined := w.Call("trip", "done", "visa"), w.Call("trip", "declined", "declined")
		interrupted, late := w.Call("trip", "interrupted", "visa"), w.Call("trip", "late", "visa")
		w.Signal("trip.confirmed", "done", "Ada")
		w.Signal("trip.confirmed", "declined", "Ada")
		w.Advance(time.Hour)
		interrupted.Interrupt(quiputest.Interrupt{})
		done.Output(nil)
		declined.Fails(402)
		interrupted.Fails(410)
		w.Settle()
		w.Call("trip", "under way", "visa")
		w.Settle()
		w.Export(filepath.Join(dir, "trips.jsonl"))
		late.Fails(408)
	})
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(order, shipping)
		w.Serve(shop(w))
		w.Start("order", "o-1", map[string]any{"lines": []string{"a", "b", "c"}}).Output(nil)
		w.Export(filepath.Join(dir, "orders.jsonl"))
	})
	flows := t.TempDir()
	for name, text := range map[string]string{"order.yaml": order, "shipping.yaml": shipping, "insurance.yaml": insurance} {
		require.NoError(t, os.WriteFile(filepath.Join(flows, name), []byte(text), 0o600))
	}
	quiputest.ReplayJournal(t, dir, func(reg *workers.Registry) {
		trip(nowhere{})(reg)
		shop(nowhere{})(reg)
	}, quiputest.Flows(filepath.Join(flows, "*.yaml")), quiputest.SameAnswers())
}
