package examples_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/examples/saga"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// agency applies each request once, by its reference or key.
type agency struct{ *quiputest.Receiver }

func (a agency) Book(ctx context.Context, what, reference string) error {
	a.Apply(ctx, "book "+what+" "+reference)
	return nil
}

func (a agency) Cancel(ctx context.Context, what, reference string) error {
	a.Apply(ctx, "cancel "+what+" "+reference)
	return nil
}

func (a agency) Charge(ctx context.Context, key, card string) (string, error) {
	if card == "declined" {
		return "", workers.Fail(402, "the card is declined")
	}
	a.Apply(ctx, "charge "+key)
	return "receipt of " + card, nil
}

// trips is a scenario: days pass at once in it.
func trips(end func(testing.TB, *quiputest.World)) quiputest.Scenario {
	return func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("saga/insurance.yaml")
		desk := saga.Desk{Agency: agency{w.Receiver("agency")}, Patience: 7 * 24 * time.Hour, Cooling: 24 * time.Hour}
		w.Serve(workers.RegisterBuiltins, desk.Register)
		end(t, w)
	}
}

// Wherever the process dies, a trip is booked and paid once, or cancelled. The reference differs
// each time.
func TestTripWhereverAProcessDies(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]quiputest.Scenario{
		"booked": trips(func(t testing.TB, w *quiputest.World) {
			trip := w.Call("trip.book", "trip-1", saga.Trip{Traveller: "Ada", To: "Lima", Card: "visa"})
			w.Advance(6 * 24 * time.Hour)
			w.Signal("trip.confirmed", "trip-1", saga.Confirmation{By: "Ada"})
			var out saga.Itinerary
			trip.Output(&out)
			require.Equal(t, "receipt of visa", out.Receipt)
		}),
		"declined": trips(func(t testing.TB, w *quiputest.World) {
			w.Signal("trip.confirmed", "trip-2", saga.Confirmation{By: "Mei"})
			trip := w.Call("trip.book", "trip-2", saga.Trip{Traveller: "Mei", To: "Oslo", Card: "declined"})
			require.Equal(t, "the card is declined", trip.Fails(402).Message)
		}),
		"forgotten": trips(func(_ testing.TB, w *quiputest.World) {
			w.Call("trip.book", "trip-3", saga.Trip{Traveller: "Zoe", To: "Rome", Card: "visa"}).Fails(408)
		}),
		"interrupted": trips(func(_ testing.TB, w *quiputest.World) {
			trip := w.Call("trip.book", "trip-4", saga.Trip{Traveller: "Zoe", To: "Rome", Card: "visa"})
			w.Advance(time.Hour)
			trip.Interrupt(quiputest.Interrupt{Reason: "she is ill"})
			trip.Fails(410)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quiputest.CrashEverywhere(t, scenario, quiputest.Ignore("reference"))
		})
	}
}

// E14: the function is a function; a unit test calls it as one.
func TestBook(t *testing.T) {
	t.Parallel()
	books := &saga.File{Path: filepath.Join(t.TempDir(), "books")}
	desk := saga.Desk{Agency: books, Patience: time.Minute}
	ctx := quiputest.WithSignals(t.Context(), func(context.Context, string, string) (any, error) {
		return saga.Confirmation{By: "Ada"}, nil
	})
	ctx = quiputest.WithChildren(ctx, func(context.Context, string, string, json.RawMessage) (any, error) {
		return saga.Policy{Number: "P1"}, nil
	})
	_, err := quiputest.Plain(ctx, desk.Book, saga.Trip{Card: "declined"})
	var refused *workers.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 402, refused.Code)
	lines, err := books.Lines()
	require.NoError(t, err)
	require.Len(t, lines, 4)
	for i, did := range []string{"book flight", "book hotel", "cancel hotel", "cancel flight"} {
		require.Contains(t, lines[i], did)
	}
}
