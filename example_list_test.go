package quipu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
)

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
		fmt.Println(job.Job.Key, job.State)
	}
	// Unordered output:
	// order-4 open
	// order-3 interrupted
	// order-2 open
	// order-1 open
	// order-0 open
}

// The jobs that wait for a signal of one topic. A page of JobsPage may end before it is full, so that
// it comes in time however many jobs there are: then Searched says how far it has looked.
func ExampleRuntime_JobsPage() {
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
		page, err := rt.JobsPage(ctx, f)
		must(err)
		for _, j := range page.Jobs {
			fmt.Println(j.Job.Key)
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
