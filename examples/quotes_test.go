package examples_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/quotes"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// The join runs once, when all three have an answer, with the offers of two (P10).
func TestQuotes(t *testing.T) {
	play(t, "quotes", func(t testing.TB, w *quiputest.World) {
		heavy, light := w.Start("quotes", "parcel-1", map[string]any{"kilograms": 10}), w.Start("quotes", "parcel-2", map[string]any{"kilograms": 0.1})
		gives(t, heavy, `{
			"best": {"carrier": "alpha", "price": 12.9},
			"offers": [{"carrier": "alpha", "price": 12.9}, {"carrier": "beta", "price": 14.5}],
			"declined": ["gamma does not go there"]
		}`)
		gives(t, light, `{
			"best": {"carrier": "beta", "price": 2.62},
			"offers": [{"carrier": "alpha", "price": 4.98}, {"carrier": "beta", "price": 2.62}],
			"declined": ["gamma does not go there"]
		}`)
		for _, join := range []string{"offers", "declined"} { // three arrivals, of them some taken (1.12)
			_, digits := ledgers(heavy, join)
			require.Len(t, digits, 1)
			require.Regexp(t, "^2011103", digits[0], join)
		}
	})
}

// The first answer ends the job, and cancels the wait for the other one.
func TestFirst(t *testing.T) {
	play(t, "quotes", func(t testing.TB, w *quiputest.World) {
		job := w.Start("first", "parcel-3", struct{}{})
		w.Settle()
		require.Len(t, job.Info().Waits, 2)
		require.Equal(t, quipu.SignalConsumed, w.Signal("quotes.beta", "parcel-3", quotes.Offer{Carrier: "beta", Cents: 1450}).State)
		gives(t, job, `{"booked": {"offer": {"carrier": "beta", "cents": 1450}}}`)
		require.Empty(t, job.Info().Waits)
		require.Equal(t, quipu.SignalKept, w.Signal("quotes.alpha", "parcel-3", nil).State, "nobody waits for it any more")
	})
}

// One request goes to each carrier; one that declines does not hold up the others. If all decline
// there is no best offer; without carriers there are no requests.
func TestTender(t *testing.T) {
	play(t, "quotes", func(t testing.TB, w *quiputest.World) {
		for carriers, output := range map[string]string{
			`["alpha", "beta", "gamma"]`: `{"best": {"carrier": "beta", "cents": 700}, "declined": ["gamma does not go there"]}`,
			`["gamma"]`:                  `{"best": null, "declined": ["gamma does not go there"]}`,
			`[]`:                         `{"best": null, "declined": []}`,
		} {
			gives(t, w.Start("tender", carriers, json.RawMessage(`{"kilograms": 10, "carriers": `+carriers+`}`)), output)
		}
	}, quotes.Tariffs{"alpha": 80, "beta": 70}.Register)
}

// A handler is a function, and can be tested as one.
func TestQuote(t *testing.T) {
	t.Parallel()
	offer, err := quotes.Tariffs{"alpha": 80}.Quote(context.Background(), quotes.Ask{Carrier: "alpha", Kilograms: 3})
	require.NoError(t, err)
	require.Equal(t, quotes.Offer{Carrier: "alpha", Cents: 240}, offer)
	_, err = quotes.Tariffs{}.Quote(context.Background(), quotes.Ask{Carrier: "alpha", Kilograms: 3})
	var refused *workers.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 422, refused.Code)
}
