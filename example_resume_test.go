package quipu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

const purchase = `
flow: purchase
version: "1"
output: "${ charge.output }"
activities:
  start:   {type: trigger}
  reserve: {type: worker, topic: stock.reserve}
  charge:  {type: worker, topic: card.charge, retry: {attempts: 1}}
transitions: {start: [reserve], reserve: [charge]}
`

// A failed job goes on where it failed, once the cause is fixed. Activities with a result are not
// done again, unless From names one.
func ExampleRuntime_Resume() {
	ctx := context.Background()
	reg := workers.New()
	reserved, card := 0, "expired"
	workers.Handle(reg, "stock.reserve", func(context.Context, any) (int, error) { reserved++; return reserved, nil })
	workers.Handle(reg, "card.charge", func(context.Context, any) (string, error) {
		if card != "valid" {
			return "", workers.Fail(402, "the card is "+card)
		}
		return "paid", nil
	})
	rt, _, end := example(purchase, reg)
	defer end()
	wait := func(job quipu.Job) {
		_, err := rt.Wait(ctx, job)
		fmt.Println("reserved", reserved, "-", err)
	}
	first, err := rt.Start(ctx, "purchase", "order-1", nil)
	must(err)
	wait(first)

	why := []quipu.ResumeOption{quipu.Who("ann"), quipu.Reason("the customer has a new card")}
	card = "blocked"
	second, err := rt.Resume(ctx, quipu.Job{Key: "order-1"}, why...)
	must(err)
	wait(second) // charge alone
	card = "valid"
	third, err := rt.Resume(ctx, quipu.Job{Key: "order-1"}, append(why, quipu.From("reserve"))...)
	must(err)
	wait(third) // reserve, too

	_, err = rt.Resume(ctx, quipu.Job{Key: "order-1"}, why...)
	fmt.Println(errors.Is(err, quipu.ErrResume), err)
	info, err := rt.Job(ctx, quipu.Job{Key: "order-1"}) // the key means the last one
	must(err)
	fmt.Println(info.Generation, info.State, info.ID == third.ID, info.Resumes == second.ID)
	// Output:
	// reserved 1 - job "order-1" failed with code 402: the card is expired
	// reserved 1 - job "order-1" failed with code 402: the card is blocked
	// reserved 2 - <nil>
	// true job "order-1": refused to resume: it has completed: there is nothing left to do
	// 3 completed true true
}

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
	fork, err := rt.Fork(ctx, quipu.Job{Key: "order-1"}, at, "order-1-now", why...)
	must(err)
	out, err = rt.Wait(ctx, fork)
	must(err)
	fmt.Println(string(out), "- reserved", reserved)

	info, err := rt.Job(ctx, fork)
	must(err)
	fmt.Println(info.ForkOf == job.ID)
	_, err = rt.Fork(ctx, quipu.Job{Key: "order-1-now"}, at, "order-1-again")
	fmt.Println(errors.Is(err, quipu.ErrFork), err)
	// Output:
	// "paid 100"
	// "paid 80" - reserved 1
	// true
	// true job "order-1-now": refused to fork: it resumes another job, or is a fork itself: fork the first one (quipu show names it)
}
