package quipu_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/workers"
)

const subscribing = `
flow: subscribing
version: "1"
activities:
  start:   {type: trigger}
  welcome: {type: worker, topic: user.welcome}
transitions: {start: [welcome]}
`

// A pipeline compares the new build with the open jobs before it replaces the old one, and ends
// with an exit code if there is a misfit.
func ExampleRuntime_CheckOpen() {
	ctx := context.Background()
	build := func(first string) *workers.Registry {
		reg := workers.New()
		workers.HandleDurable(reg, "user.welcome", func(ctx context.Context, _ any) (string, error) {
			_, err := effects.Do(ctx, first, func(context.Context) (string, error) { return "sent", nil }, effects.Idempotent)
			if err != nil {
				return "", err
			}
			return workers.Await[string](ctx, "user.confirmed", 0)
		})
		return reg
	}
	rt, _, end := example(subscribing, build("send mail"))
	defer end()
	job, err := rt.Start(ctx, "subscribing", "ada", nil)
	must(err)
	for info := new(quipu.JobInfo); len(info.Waits) == 0; {
		info, err = rt.Job(ctx, job)
		must(err)
	}

	first := func(m quipu.Misfit) string {
		said, _, _ := strings.Cut(m.String(), ";")
		return said
	}
	check := func(c quipu.OpenCheck) {
		misfits := 0
		c.Progress = func(jobs, requests int64) { fmt.Println(jobs, "job,", requests, "request,", misfits, "misfits") }
		for m, err := range rt.CheckOpen(ctx, c) {
			must(err)
			misfits++
			fmt.Println(first(m))
		}
	}
	check(quipu.OpenCheck{Workers: build("send mail"), Flows: []*flow.Flow{parsed(subscribing)}})
	check(quipu.OpenCheck{Workers: build("send letter")})
	// Output:
	// 1 job, 1 request, 0 misfits
	// job "ada" of flow subscribing version 1, welcome at ,0,0: the function takes another path than the recorded one: at position 1 it asks for effect "send letter", and effect "send mail" is recorded there
	// 1 job, 1 request, 1 misfits
}
