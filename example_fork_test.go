package quipu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

// A fork goes on from an entry of another job, under a key of its own. What stood there it has;
// what came after it does itself.
func ExampleRuntime_Fork() {
	ctx := context.Background()
	reg := workers.New()
	reserved, price := 0, 100
	workers.Handle(reg, "stock.reserve", func(context.Context, any) (int, error) { reserved++; return reserved, nil })
	workers.Handle(reg, "card.charge", func(context.Context, any) (string, error) { return fmt.Sprint("paid ", price), nil })
	rt, _, end := example(purchase, reg)
	defer end()
	job, err := rt.Start(ctx, "purchase", "order-1", nil)
	must(err)
	out, err := rt.Wait(ctx, job)
	must(err)
	fmt.Println(string(out))

	var at int64 // the entry with the result of reserve
	for e, err := range rt.Journal(ctx, job) {
		must(err)
		if e.Activity == "reserve" && e.Response != nil {
			at = e.Seq
		}
	}
	price = 80
	why := []quipu.ForkOption{quipu.Who("ann"), quipu.Reason("what would it cost now")}
	fork, err := rt.Fork(ctx, "order-1", at, "order-1-now", why...)
	must(err)
	out, err = rt.Wait(ctx, fork)
	must(err)
	fmt.Println(string(out), "- reserved", reserved)

	info, err := rt.Job(ctx, fork)
	must(err)
	fmt.Println(info.ForkOf == job.ID)
	_, err = rt.Fork(ctx, "order-1-now", at, "order-1-again")
	fmt.Println(errors.Is(err, quipu.ErrFork), err)
	// Output:
	// "paid 100"
	// "paid 80" - reserved 1
	// true
	// true job "order-1-now": refused to fork: it resumes another job, or is a fork itself: fork the first one (quipu show names it)
}
