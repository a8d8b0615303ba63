package saga

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// Trip is what a traveller asks for.
type Trip struct {
	Traveller string `json:"traveller"`
	To        string `json:"to"`
	Card      string `json:"card"`
}

// Itinerary is what the traveller gets.
type Itinerary struct {
	Reference   string `json:"reference"`
	Policy      string `json:"policy"`
	ConfirmedBy string `json:"confirmed_by"`
	Receipt     string `json:"receipt"`
}

// Policy is the output of insurance.yaml.
type Policy struct {
	Number string `json:"number"`
}

// Confirmation is the payload of the signal trip.confirmed.
type Confirmation struct {
	By string `json:"by"`
}

// Agency is the outside world. A call may come twice with the same reference or key; it is then
// applied once.
type Agency interface {
	// Book books a flight or a hotel under the reference.
	Book(ctx context.Context, what, reference string) error
	// Cancel cancels a booking. It does nothing for one that was never made.
	Cancel(ctx context.Context, what, reference string) error
	// Charge takes the price of the trip.
	Charge(ctx context.Context, key, card string) (receipt string, err error)
}

// Desk books trips.
type Desk struct {
	Agency   Agency
	Patience time.Duration // how long to wait for the traveller's confirmation
	Cooling  time.Duration // time before the charge in which the traveller can still withdraw
}

// Register adds the function to the handlers of a worker process.
func (d Desk) Register(reg *workers.Registry) { workers.HandleDurable(reg, "trip.book", d.Book) }

// Book books a flight and a hotel, insures the traveller, waits for a confirmation, and charges
// the card. While it waits it exists only in the journal. If a refused card, a missing answer or
// an interrupt stops it, it cancels its bookings, the last one first.
func (d Desk) Book(ctx context.Context, in Trip) (out Itinerary, err error) {
	// The result is recorded: it is the same each time the function runs again from the top.
	if out.Reference, err = workers.UUID(ctx); err != nil {
		return out, err
	}
	for _, what := range []string{"flight", "hotel"} {
		if err := d.book(ctx, what, out.Reference); err != nil {
			return out, err
		}
	}
	policy, err := workers.Child[Policy](ctx, "insurance", "insurance", in)
	if err != nil {
		return out, err
	}
	confirmed, err := workers.Await[Confirmation](ctx, "trip.confirmed", d.Patience) // under the key of the job
	if err != nil {
		return out, err // no answer is an error like any other
	}
	if err := workers.Sleep(ctx, "cooling-off", d.Cooling); err != nil {
		return out, err
	}
	out.Policy, out.ConfirmedBy = policy.Number, confirmed.By
	out.Receipt, err = effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
		return d.Agency.Charge(ctx, effects.Key(ctx), in.Card)
	}, effects.Idempotent)
	return out, err
}

// book books one part. It registers the compensation first, so that a booking of unknown outcome
// is cancelled, too.
func (d Desk) book(ctx context.Context, what, reference string) error {
	err := workers.Compensate(ctx, "cancel "+what, func(ctx context.Context) error {
		return d.Agency.Cancel(ctx, what, reference)
	})
	if err != nil {
		return err
	}
	_, err = effects.Do(ctx, "book "+what, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.Agency.Book(ctx, what, reference)
	}, effects.Idempotent)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
