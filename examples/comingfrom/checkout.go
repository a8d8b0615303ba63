package comingfrom

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// Basket is what somebody buys.
type Basket struct {
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}

// Till takes money. A key that comes twice is charged once.
type Till interface {
	// Charge charges, and returns a receipt.
	Charge(ctx context.Context, key string, cents int) (string, error)
}

// Store sells.
type Store struct {
	Till    Till
	Cooling time.Duration // between the charge and the delivery
}

// Register adds the function to the handlers of a process.
func (s Store) Register(reg *workers.Registry) { workers.HandleDurable(reg, "checkout", s.Checkout) }

// Checkout takes the goods from the stock, charges, and answers after a while.
func (s Store) Checkout(ctx context.Context, in Basket) (string, error) {
	_, err := quipu.DoTx(ctx, "reserve", func(ctx context.Context, tx quipu.EffectTx) (struct{}, error) {
		done, err := tx.Exec(ctx, "update stock set pieces = pieces - 1 where item = $1 and pieces > 0", in.Item)
		if err == nil && done.RowsAffected() == 0 {
			err = workers.Fail(409, "sold out") // recorded: every later run gets the same
		}
		return struct{}{}, err
	})
	if err != nil {
		return "", err
	}
	receipt, err := effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
		return s.Till.Charge(ctx, effects.Key(ctx), in.Cents)
	}, effects.Idempotent)
	if err != nil {
		return "", err
	}
	return receipt, workers.Sleep(ctx, "cooling off", s.Cooling)
}

// Buy runs the function under a key, and waits for its receipt.
func Buy(ctx context.Context, rt *quipu.Runtime, order string, in Basket) (string, error) {
	return quipu.CallAs[string](ctx, rt, "checkout", order, in)
}
