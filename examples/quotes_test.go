package examples_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/quotes"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/workers"
)

// The join runs once, when all three have an answer, with the offers of two (P10).
func TestQuotes(t *testing.T) {
	t.Parallel()
	s := open(t, "quotes")
	s.Begin("quotes", "parcel-1", `{"kilograms": 10}`)
	s.Begin("quotes", "parcel-2", `{"kilograms": 0.1}`)
	require.JSONEq(t, `{
		"best": {"carrier": "alpha", "price": 12.9},
		"offers": [{"carrier": "alpha", "price": 12.9}, {"carrier": "beta", "price": 14.5}],
		"declined": ["gamma does not go there"]
	}`, s.Output("parcel-1"))
	require.JSONEq(t, `{
		"best": {"carrier": "beta", "price": 2.62},
		"offers": [{"carrier": "alpha", "price": 4.98}, {"carrier": "beta", "price": 2.62}],
		"declined": ["gamma does not go there"]
	}`, s.Output("parcel-2"))
	for _, i := range s.View("parcel-1").Instances { // three arrivals, of them some taken (1.12)
		if name := i.Key.Activity; name == "offers" || name == "declined" {
			require.Regexp(t, "^2011103", i.Ledger.String(), name)
		}
	}
}

// The first answer ends the job, and cancels the wait for the other one.
func TestFirst(t *testing.T) {
	t.Parallel()
	s := open(t, "quotes")
	s.Begin("first", "parcel-3", `{}`)
	s.Until("parcel-3", "both waits", func(v *store.JobView) bool { return len(v.Waits) == 2 })
	res, err := s.Signal(t.Context(), "quotes.beta", "parcel-3", map[string]any{"carrier": "beta", "price": 14.5})
	require.NoError(t, err)
	require.Equal(t, quipu.SignalConsumed, res.State)
	require.JSONEq(t, `{"booked": {"offer": {"carrier": "beta", "price": 14.5}}}`, s.Output("parcel-3"))
	v := s.View("parcel-3")
	require.Equal(t, journal.JobCompleted, v.State)
	require.Empty(t, v.Waits)
	res, err = s.Signal(t.Context(), "quotes.alpha", "parcel-3", map[string]any{"carrier": "alpha", "price": 12.9})
	require.NoError(t, err)
	require.Equal(t, quipu.SignalKept, res.State, "nobody waits for it any more")
}

// One request goes to each carrier; one that declines does not hold up the others.
func TestTender(t *testing.T) {
	t.Parallel()
	s := open(t, "quotes", quotes.Tariffs{"alpha": 80, "beta": 70}.Register)
	s.Begin("tender", "tender-1", `{"carriers": ["alpha", "beta", "gamma"], "kilograms": 10}`)
	require.JSONEq(t, `{"best": {"carrier": "beta", "cents": 700}, "declined": ["gamma does not go there"]}`, s.Output("tender-1"))
}

// If all decline there is no best offer; without carriers there are no requests.
func TestTenderOfNone(t *testing.T) {
	t.Parallel()
	s := open(t, "quotes", quotes.Tariffs{}.Register)
	s.Begin("tender", "tender-2", `{"carriers": ["gamma"], "kilograms": 10}`)
	s.Begin("tender", "tender-3", `{"carriers": [], "kilograms": 10}`)
	require.JSONEq(t, `{"best": null, "declined": ["gamma does not go there"]}`, s.Output("tender-2"))
	require.JSONEq(t, `{"best": null, "declined": []}`, s.Output("tender-3"))
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
