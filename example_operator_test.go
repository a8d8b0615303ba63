package quipu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// A call outside is cut off, and nobody knows whether it was done. The job waits for a person,
// who checks and decides.
func ExampleOperator() {
	ctx := context.Background()
	reg := workers.New()
	workers.Handle(reg, "bank.lost", func(ctx context.Context, amount int) (int, error) {
		return effects.Do(ctx, "transfer", func(context.Context) (int, error) { return 0, errors.New("connection cut off") })
	})
	rt, _, end := example(`{flow: pay, version: "1", output: "${ move.output }", activities: {start: {type: trigger}, `+
		`move: {type: worker, topic: bank.lost, input: "${ start.output }"}}, transitions: {start: [move]}}`, reg)
	defer end()

	job, err := rt.Start(ctx, "pay", "invoice-7", 7)
	must(err)
	_, err = rt.Wait(ctx, job, quipu.UntilParked(true))
	var parked *quipu.ParkedError
	fmt.Println("parked:", errors.As(err, &parked))
	for _, l := range parked.DeadLetters {
		fmt.Println(l.Job.Key, l.Topic, l.Reason, l.Kind == journal.MessageResponse)
		if l.Reason != quipu.ReasonParked || l.State != quipu.LetterOpen {
			fmt.Println(help(l.Reason))
			continue
		}
		must(rt.Operator().Decide(ctx, quipu.Decision{
			DeadLetter: l.ID, Verdict: quipu.Done, Result: 7, Who: "ann", Reason: "it is in their books",
		}))
	}
	out, err := quipu.WaitAs[int](ctx, rt, job)
	fmt.Println(out, err)

	all, err := rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{All: true, Reason: quipu.ReasonParked})
	must(err)
	for _, l := range all {
		switch l.State {
		case quipu.LetterRetried, quipu.LetterResolved, quipu.LetterFailed:
			fmt.Println("dead letter of", l.Activity, "was", l.State)
		case quipu.LetterAnswered:
			fmt.Println("its answer came after all")
		}
	}
	// Output:
	// parked: true
	// invoice-7 bank.lost parked true
	// 7 <nil>
	// dead letter of move was resolved
}

// help says what kind of trouble a dead letter tells of.
func help(reason quipu.DeadLetterReason) string {
	switch reason {
	case quipu.ReasonParked, quipu.ReasonConfirm, quipu.ReasonResultMisfit:
		return "about an effect: look outside"
	case quipu.ReasonNondeterminism, quipu.ReasonUndo, quipu.ReasonRuns:
		return "about a handler: fix it, then retry"
	case quipu.ReasonStuck, quipu.ReasonSlow, quipu.ReasonLoads, quipu.ReasonRefused, quipu.ReasonForeign, quipu.ReasonUndecodable, quipu.ReasonChanged:
		return "about the message: its text says which"
	}
	return "unknown to this version"
}

// A start may be repeated until it succeeds. Another input with the same key is a conflict.
func ExampleRuntime_Start() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	for range 2 {
		job, err := rt.Start(ctx, "approval", "order-42", map[string]int{"total": 1}, quipu.Version("1"), quipu.Tags{"customer:7"})
		fmt.Println(job.Key, job.Existing, err)
	}
	_, err := rt.Start(ctx, "approval", "order-42", map[string]int{"total": 2})
	fmt.Println(err)
	jobs, err := rt.Jobs(ctx, quipu.JobFilter{Tags: []string{"customer:7"}})
	must(err)
	fmt.Println(len(jobs), jobs[0].Job.Key, jobs[0].State)
	// Output:
	// order-42 false <nil>
	// order-42 true <nil>
	// the key "order-42" has a job with another input: take another key
	// 1 order-42 open
}

// A process whose servers are named by the environment, or by a running `worker dev`.
func ExampleConfigFromEnv() {
	cfg, err := quipu.ConfigFromEnv()
	if err == nil && cfg.Postgres == "" {
		cfg, err = quipu.ConfigFromDev(".quipu")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg.Workers = workers.New()
	cfg.Roles = []quipu.Role{quipu.RoleWorkers}
}
