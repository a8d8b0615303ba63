package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// The Go of docs/functions.md stands in this file.

type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

type Approval struct {
	By string `json:"by"`
}

type Parcel struct {
	Tracking string `json:"tracking"`
}

type payments struct{}

func (payments) Charge(_ context.Context, order string, amount int, key string) (string, error) {
	fmt.Println("charge", amount)
	return "receipt-" + order, nil
}

func (payments) Refund(_ context.Context, order, key string) error {
	fmt.Println("refund", order)
	return nil
}

var bank payments

func fulfil(ctx context.Context, in Order) (Parcel, error) {
	err := workers.Compensate(ctx, "refund", func(ctx context.Context) error {
		return bank.Refund(ctx, in.ID, effects.Key(ctx))
	})
	if err != nil {
		return Parcel{}, err
	}
	receipt, err := effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
		return bank.Charge(ctx, in.ID, in.Amount, effects.Key(ctx))
	}, effects.Idempotent)
	if err != nil {
		return Parcel{}, err
	}
	approval, err := workers.Await[Approval](ctx, "approve", 48*time.Hour)
	if errors.Is(err, workers.ErrAwaitTimeout) {
		return Parcel{}, workers.Fail(409, "nobody approved "+receipt)
	}
	if err != nil {
		return Parcel{}, err
	}
	if err := workers.Sleep(ctx, "cooling off", 24*time.Hour); err != nil {
		return Parcel{}, err
	}
	return workers.Child[Parcel](ctx, "parcel", "ship", map[string]string{"order": in.ID, "approved_by": approval.By})
}

func register(reg *workers.Registry) {
	workers.HandleDurable(reg, "orders.fulfil", fulfil)
}

// A durable function, called as a test calls it: without a job, with the signals
// and the children that the test has for it.
func ExampleHandleDurable() {
	register(workers.New())
	ctx := quiputest.WithSignals(context.Background(), func(_ context.Context, topic, key string) (any, error) {
		return nil, workers.ErrAwaitTimeout
	})
	ctx = quiputest.WithChildren(ctx, func(_ context.Context, name, flow string, input json.RawMessage) (any, error) {
		return Parcel{Tracking: "T-1"}, nil
	})
	_, err := quiputest.Plain(ctx, fulfil, Order{ID: "o-1", Amount: 40})
	fmt.Println(err)
	// Output:
	// charge 40
	// refund o-1
	// error 409: nobody approved receipt-o-1
}

func quotes(ctx context.Context, carriers []string) ([]int, error) {
	branches := make([]func(context.Context) (int, error), len(carriers))
	for i, carrier := range carriers {
		branches[i] = func(ctx context.Context) (int, error) {
			return effects.Do(ctx, "quote", func(ctx context.Context) (int, error) {
				return ask(ctx, carrier)
			}, effects.Idempotent, effects.WithKey(carrier))
		}
	}
	return workers.All(ctx, branches...)
}

func ask(_ context.Context, carrier string) (int, error) { return len(carrier), nil }

func ExampleAll() {
	fmt.Println(quotes(context.Background(), []string{"snail", "dove"}))
	// Output: [5 4] <nil>
}

func answer(ctx context.Context, question string) (string, error) {
	who, text, err := workers.First(ctx,
		func(ctx context.Context) (string, error) {
			return workers.Await[string](ctx, "answer", 0, workers.SignalKey(question))
		},
		func(ctx context.Context) (string, error) {
			return "no answer", workers.Sleep(ctx, "patience", time.Hour)
		},
	)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(who, ": ", text), nil
}

func ExampleFirst() {
	ctx := quiputest.WithSignals(context.Background(), func(_ context.Context, topic, key string) (any, error) {
		return "42", nil
	})
	fmt.Println(answer(ctx, "life"))
	// Output: 0: 42 <nil>
}

func onboard(ctx context.Context, user string) (string, error) {
	v, err := workers.Version(ctx, "welcome by letter", 1)
	if err != nil {
		return "", err
	}
	if v == 0 {
		return mail(ctx, user) // jobs that were past this place when the change came
	}
	return letter(ctx, user)
}

func mail(_ context.Context, user string) (string, error) { return "mail to " + user, nil }

func letter(_ context.Context, user string) (string, error) { return "letter to " + user, nil }

func ExampleVersion() {
	fmt.Println(onboard(context.Background(), "ann"))
	// Output: letter to ann <nil>
}

// A price is computed and does nothing outside, so its step may begin before the order is recorded,
// and needs no commit of its own.
func ExampleEarly() {
	reg := workers.New()
	workers.Handle(reg, "orders.price", func(_ context.Context, in Order) (int, error) {
		return in.Amount * 119 / 100, nil
	}, workers.Early())
	fmt.Println(reg.Topics(), reg.Check())
	// Output: [orders.price] <nil>
}
