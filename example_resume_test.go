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
	fmt.Println(info.Generation, info.State, info.Job.ID == third.ID, info.Resumes == second.ID)
	// Output:
	// reserved 1 - job "order-1" failed with code 402: the card is expired
	// reserved 1 - job "order-1" failed with code 402: the card is blocked
	// reserved 2 - <nil>
	// true job "order-1": refused to resume: it has completed: there is nothing left to do
	// 3 completed true true
}
