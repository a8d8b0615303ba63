package comingfrom

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// Request asks for a refund.
type Request struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// Decision is what somebody says of a request.
type Decision struct {
	Approved bool `json:"approved"`
}

// Bank pays out. A key that comes twice is paid once.
type Bank interface {
	// PayOut pays, and returns a receipt.
	PayOut(ctx context.Context, key string, in Request) (string, error)
}

// Desk decides on refunds.
type Desk struct{ Bank Bank }

// Register adds the function to the handlers of a process.
func (d Desk) Register(reg *workers.Registry) { workers.HandleDurable(reg, "refund", d.Refund) }

// Refund waits up to three days for a decision, and pays.
func (d Desk) Refund(ctx context.Context, in Request) (string, error) {
	decision, err := workers.Await[Decision](ctx, "refund.decided", 72*time.Hour)
	if err != nil && !errors.Is(err, workers.ErrAwaitTimeout) {
		return "", err
	}
	if !decision.Approved {
		return "", workers.Fail(403, "not approved")
	}
	return effects.Do(ctx, "pay out", func(ctx context.Context) (string, error) {
		return d.Bank.PayOut(ctx, effects.Key(ctx), in)
	}, effects.Idempotent)
}

// Approve says yes, before or after the function waits for it.
func Approve(ctx context.Context, rt *quipu.Runtime, order string) error {
	_, err := rt.Signal(ctx, "refund.decided", "refund-"+order, Decision{Approved: true})
	return err
}

// Pay starts the refund, and waits for its receipt.
func Pay(ctx context.Context, rt *quipu.Runtime, in Request) (string, error) {
	return quipu.CallAs[string](ctx, rt, "refund", "refund-"+in.Order, in)
}
