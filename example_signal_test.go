package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu"
)

// A job waits for somebody's decision, which comes as a signal. The signal may come before the
// job waits or after, and perhaps twice.
func ExampleRuntime_Signal() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	job, err := rt.Start(ctx, "approval", "order-42", nil)
	must(err)
	for range 2 {
		_, err = rt.Signal(ctx, "order.reviewed", "order-42", map[string]any{"ok": true}, quipu.IdempotencyKey("click-17"))
		must(err)
	}
	out, err := rt.Wait(ctx, job)
	must(err)
	fmt.Println(string(out))
	// Output: {"approved":true,"by":"signal"}
}

// SignalAll reaches every hook that waits for the key. The signal is not kept.
func ExampleRuntime_SignalAll() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	sent, err := rt.SignalAll(ctx, "order.reviewed", "nobody-waits", nil)
	must(err)
	fmt.Println(sent.State, sent.Reached)
	// Output: missed 0
}

// An interrupt ends a job from outside. Wait returns the reason.
func ExampleRuntime_Interrupt() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	job, err := rt.Start(ctx, "approval", "order-43", nil)
	must(err)
	_, err = rt.Interrupt(ctx, quipu.Job{Key: "order-43"}, quipu.Code(409), quipu.Reason("withdrawn by the customer"), quipu.Descend(true))
	must(err)
	_, err = rt.Wait(ctx, job)
	if ended, ok := errors.AsType[*quipu.JobError](err); ok {
		fmt.Println(ended.State, ended.Code, ended.Cause.Message)
	}
	// Output: interrupted 409 withdrawn by the customer
}

const approval = `
flow: approval
version: "1"
output: {approved: "${ review.by == 'signal' && review.output.ok }", by: "${ review.by }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: order.reviewed, key: "${ job.id }", sleep: 72h}
transitions: {start: [review]}
`

// click is a program's own signal. A repeated click repeats its id, and then does nothing.
func click(ctx context.Context, rt *quipu.Runtime, order, id string, options ...quipu.SignalOption) string {
	sent, err := rt.Signal(ctx, "order.reviewed", order, map[string]bool{"ok": true}, append(options, quipu.IdempotencyKey(id))...)
	must(err)
	return became(sent)
}

func became(sent quipu.SignalResult) (text string) {
	switch sent.State {
	case quipu.SignalConsumed:
		text = "a wait took it"
	case quipu.SignalKept:
		text = "it is kept for the next one that waits"
	case quipu.SignalMissed:
		text = "nobody has it"
	}
	if sent.Duplicate {
		return text + ", the first time"
	}
	return fmt.Sprintf("%s (%d)", text, sent.Reached)
}

// The outcome of a signal: the sender learns it, and need not know whether a job waits.
func ExampleSignalResult() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	start := func(order string) quipu.Job {
		job, err := rt.Start(ctx, "approval", order, nil)
		must(err)
		return job
	}

	fmt.Println(click(ctx, rt, "order-1", "click-1", quipu.Keep(24*time.Hour)))
	fmt.Println(click(ctx, rt, "order-1", "click-1"))
	_, err := rt.Wait(ctx, start("order-1"))
	must(err)
	fmt.Println(click(ctx, rt, "order-1", "click-1"))

	job := start("order-2")
	waiting(ctx, rt, job)
	fmt.Println(click(ctx, rt, "order-2", "click-2", quipu.Code(422))) // an error, for the one that waits
	_, err = rt.Wait(ctx, job)
	var failed *quipu.JobError
	fmt.Println(errors.As(err, &failed), failed.State, failed.Code)

	missed, err := rt.SignalAll(ctx, "order.reviewed", "order-3", nil)
	fmt.Println(became(missed), err)
	_, err = rt.Signal(ctx, "order.reviewed", "order-3", nil, quipu.Keep(quipu.MaxKeep+1))
	fmt.Println(errors.Is(err, quipu.ErrInput), err)
	// Output:
	// it is kept for the next one that waits (0)
	// it is kept for the next one that waits, the first time
	// a wait took it, the first time
	// a wait took it (1)
	// true failed 422
	// nobody has it (0) <nil>
	// true refused input: signal: keep 720h0m0.000000001s: more than 0, and at most 720h0m0s
}

// An interrupt with an idempotency key may be repeated. A job that is no longer needed can end as
// completed.
func ExampleInterruptResult() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	job, err := rt.Start(ctx, "approval", "order-1", nil)
	must(err)

	options := []quipu.InterruptOption{quipu.IdempotencyKey("withdrawal-1"), quipu.Reason("withdrawn"), quipu.Throw(false)}
	for range 2 {
		done, err := rt.Interrupt(ctx, quipu.Job{Key: "order-1"}, options...)
		fmt.Println(done.Job.Key, "again:", done.Duplicate, err)
	}
	out, err := rt.Wait(ctx, job)
	fmt.Println(string(out), err)
	late, err := rt.Interrupt(ctx, quipu.Job{Key: "order-1"})
	fmt.Println("it had ended:", late.Closed, err)
	_, err = rt.Interrupt(ctx, quipu.Job{Key: "order-1"}, quipu.Code(200))
	fmt.Println(errors.Is(err, quipu.ErrInput), err)
	// Output:
	// order-1 again: false <nil>
	// order-1 again: true <nil>
	// {"approved":false,"by":null} <nil>
	// it had ended: true <nil>
	// true refused input: interrupt: code 200: an interrupt has 400 to 599
}
