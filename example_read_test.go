package quipu_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// waiting reads a job until it waits for a signal.
func waiting(ctx context.Context, rt *quipu.Runtime, job quipu.Job) *view.Job {
	for {
		info, err := rt.Job(ctx, job)
		if err == nil && len(info.Waits) > 0 {
			return info
		}
		if !errors.Is(err, quipu.ErrNotFound) { // a child may not have begun yet
			must(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// The state of a job: what it waits for, where it has been, and how it ended.
func ExampleRuntime_Job() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	_, err := rt.Start(ctx, "approval", "order-1", nil)
	must(err)

	job, err := rt.Find(ctx, "order-1") // by its key, from any process
	must(err)
	info := waiting(ctx, rt, job)
	for _, a := range info.Activities {
		fmt.Println(a.Activity, a.Code)
	}
	w, timer := info.Waits[0], info.Messages[0]
	fmt.Printf("%s: %s waits for %s %s, or until %s later\n", info.State, w.Activity, w.Topic, w.Key, timer.Due.Sub(w.Since).Round(time.Hour))
	switch timer.Held {
	case view.HeldParked, view.HeldStuck:
		fmt.Println("a person has to decide")
	case view.HeldParallel:
		fmt.Println("it waits for its turn")
	default:
		fmt.Println("the", timer.Kind, "comes when it is due")
	}

	_, err = rt.Signal(ctx, w.Topic, w.Key, map[string]bool{"ok": true})
	must(err)
	_, err = rt.Wait(ctx, job)
	must(err)
	info, err = rt.Job(ctx, job)
	must(err)
	fmt.Println(info.State, info.Ended, info.Code, string(info.Output))
	fmt.Println("kept for", info.Expires.Sub(info.Closed).Round(time.Minute))
	// Output:
	// review 0
	// start 200
	// open: review waits for order.reviewed order-1, or until 72h0m0s later
	// the wakeup comes when it is due
	// completed true 200 {"approved":true,"by":"signal"}
	// kept for 720h0m0s
}

const review = `
flow: review
version: "1"
output: {approved: "${ ask.output.approved }"}
activities:
  start: {type: trigger}
  ask:   {type: await, flow: approval, id: "${ job.id + '/approval' }"}
transitions: {start: [ask]}
`

// A job that waits for other jobs, and how those lead back to it.
func ExampleRuntime_Children() {
	ctx := context.Background()
	rt, _, end := exampleOf(quipu.Config{}, approval, review)
	defer end()
	job, err := rt.Start(ctx, "review", "order-1", nil)
	must(err)
	waiting(ctx, rt, quipu.Job{Key: "order-1/approval"})

	children, err := rt.Children(ctx, quipu.Job{Key: "order-1"})
	must(err)
	for _, c := range children {
		child, err := rt.Job(ctx, quipu.Job{ID: c.ID})
		must(err)
		fmt.Printf("%s waits for %s (%s), turn %d, ended: %t\n", c.Activity, child.Key, child.State, c.Turn, c.Ended)
		fmt.Println("begun by", child.Parent.Activity, "of", child.Parent.ID == job.ID)
	}
	_, err = rt.Signal(ctx, "order.reviewed", "order-1/approval", map[string]bool{"ok": true})
	must(err)
	out, err := rt.Wait(ctx, job)
	fmt.Println(string(out), err)
	// Output:
	// ask waits for order-1/approval (open), turn 1, ended: false
	// begun by ask of true
	// {"approved":true} <nil>
}

// More of a job: why it stands where it stands, and its messages as they stood at an entry of its
// journal, each with its ledger.
func ExampleRuntime_Inspect() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	job, err := rt.Start(ctx, "approval", "order-1", nil)
	must(err)
	waiting(ctx, rt, job)

	now, err := rt.Inspect(ctx, job, view.Want{Reasons: true})
	must(err)
	for _, r := range now.Reasons {
		if r.Activity != "" { // else it is about the whole job, or the space
			fmt.Println(r.Kind, r.Activity, r.Remedies[0].Command)
		}
	}
	then, err := rt.Inspect(ctx, job, view.Want{At: 1, Messages: true})
	must(err)
	fmt.Println("entry", then.At.Entry, then.At.Kind)
	for _, m := range then.Messages {
		fmt.Println(m.Kind, m.Activity, m.Ledger, m.Verdict)
	}
	// Output:
	// race review quipu signal order.reviewed order-1 PAYLOAD
	// entry 1 created
	// start start 000010000000000 handled
}

// The journal, entry by entry: History is made from it, and it also serves for a job with over
// MaxHistory entries.
func ExampleRuntime_Journal() {
	ctx := context.Background()
	rt, _, end := example(greeting("1", "hello"))
	defer end()
	job, err := rt.Start(ctx, "greet", "ada", nil)
	must(err)
	_, err = rt.Wait(ctx, job)
	must(err)

	info, err := rt.Job(ctx, job)
	must(err)
	fmt.Println("told at once:", info.Entries <= quipu.MaxHistory)
	for e, err := range rt.Journal(ctx, job) {
		must(err)
		fmt.Println(e.Seq, e.Kind, e.Marks)
	}
	// Output:
	// told at once: true
	// 1 created [entered work]
	// 2 leg2 [children closed tasks]
}

const pays = `
flow: pays
version: "1"
output: "${ charge.output }"
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: bank.charge}
transitions: {start: [charge]}
`

// outcome says what the journal holds about one effect.
func outcome(e view.Effect) string {
	switch e.State {
	case view.EffectCompleted: // with a result, or with an error that is one
		if e.Error != nil {
			return "refused: " + e.Error.Message
		}
		return "done: " + string(e.Result.JSON)
	case view.EffectNotDone:
		return "not done: it runs again, under another key"
	case view.EffectStarted:
		return "under way, or nobody knows: ask the other side"
	}
	return "unknown to this version: " + string(e.State)
}

// Was the customer charged? The journal answers, and is verified on the way.
func ExampleRuntime_Evidence() {
	ctx := context.Background()
	reg := workers.New()
	var key string // as it stands in the bank's log
	workers.Handle(reg, "bank.charge", func(ctx context.Context, _ any) (string, error) {
		return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
			key = effects.Key(ctx)
			return "receipt-1", nil
		}, effects.Idempotent)
	})
	rt, _, end := example(pays, reg)
	defer end()
	job, err := rt.Start(ctx, "pays", "order-1", nil)
	must(err)
	_, err = rt.Wait(ctx, job)
	must(err)

	for _, name := range []string{"charge", "refund"} {
		ev, err := rt.Evidence(ctx, job, name)
		must(err)
		proof := ev.Final && ev.Violation == ""
		fmt.Printf("%s: %d in %s job, proof: %t\n", name, len(ev.Effects), ev.State, proof)
		for _, e := range ev.Effects {
			fmt.Println(e.Activity, e.Class, e.Class == quipu.ClassUndo, outcome(e))
		}
	}

	// The other side has a key: whose is it?
	digest, err := journal.ParseDigest(key)
	must(err)
	effect, err := rt.Effect(ctx, digest)
	must(err)
	fmt.Println(effect.Name, "of", effect.JobKey)
	_, err = rt.Effect(ctx, journal.Digest{1})
	fmt.Println(errors.Is(err, quipu.ErrNotFound))
	// Output:
	// charge: 1 in completed job, proof: true
	// charge idempotent false done: "receipt-1"
	// refund: 0 in completed job, proof: true
	// charge of order-1
	// true
}

// History reads what happened in a job from its journal.
func ExampleRuntime_History() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	_, err := rt.Signal(ctx, "order.reviewed", "order-43", map[string]any{"ok": true})
	must(err)
	job, err := rt.Start(ctx, "approval", "order-43", nil)
	must(err)
	_, err = rt.Wait(ctx, job)
	must(err)
	events, err := rt.History(ctx, job)
	must(err)
	for _, ev := range events {
		fmt.Printf("%s: %s\n", cmp.Or(ev.Activity, "job"), ev.Text)
	}
	// Output:
	// job: started: flow approval version 1
	// review: waits for signal order.reviewed, key order-43
	// review: the signal came
	// job: the job completed
}

// All jobs of the last day that did not complete, whatever their number, page by page.
func ExampleRuntime_AllJobs() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	for n := range 5 {
		_, err := rt.Start(ctx, "approval", fmt.Sprint("order-", n), nil)
		must(err)
	}
	_, err := rt.Interrupt(ctx, quipu.Job{Key: "order-3"})
	must(err)
	_, _ = rt.Wait(ctx, quipu.Job{Key: "order-3"})

	day := quipu.JobFilter{
		Flow: "approval", Version: "1", From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour),
		States: []journal.JobState{journal.JobOpen, journal.JobFailed, journal.JobInterrupted}, Limit: 2,
	}
	for job, err := range rt.AllJobs(ctx, day) {
		must(err)
		fmt.Println(job.Key, job.State)
	}
	// Unordered output:
	// order-4 open
	// order-3 interrupted
	// order-2 open
	// order-1 open
	// order-0 open
}

// The jobs that wait for a signal of one topic. A page may end before it is full, so that
// it comes in time however many jobs there are: then Searched says how far it has looked.
func ExampleRuntime_Jobs() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	for n := range 3 {
		job, err := rt.Start(ctx, "approval", fmt.Sprint("order-", n), nil)
		must(err)
		waiting(ctx, rt, job)
	}

	f := quipu.JobFilter{Waits: "signal:order.reviewed", Limit: 2}
	for {
		var page quipu.JobPage
		page, err := rt.Jobs(ctx, f)
		must(err)
		for _, j := range page.Jobs {
			fmt.Println(j.Key)
		}
		if !page.Searched.IsZero() {
			fmt.Println("searched back to", page.Searched)
		}
		if page.Next == "" {
			break
		}
		f.Before = page.Next
	}
	// Output:
	// order-2
	// order-1
	// order-0
}

// How many jobs are in which state. The numbers are exact as long as the time range has no more
// than MaxCounted jobs.
func ExampleRuntime_CountJobs() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	for n := range 3 {
		_, err := rt.Start(ctx, "approval", fmt.Sprint("order-", n), nil)
		must(err)
	}
	_, err := rt.Interrupt(ctx, quipu.Job{Key: "order-1"})
	must(err)
	_, _ = rt.Wait(ctx, quipu.Job{Key: "order-1"})

	var counts quipu.JobCounts
	counts, err = rt.CountJobs(ctx, quipu.JobFilter{Flow: "approval", From: time.Now().Add(-time.Hour)})
	must(err)
	fmt.Println(counts.ByState[journal.JobOpen], "open,", counts.ByState[journal.JobInterrupted], "interrupted, of", counts.Looked)
	if counts.Cut {
		fmt.Println("there are over", quipu.MaxCounted, "jobs: take a shorter time")
	}
	// Output: 2 open, 1 interrupted, of 3
}
