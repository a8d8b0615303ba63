package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/console"
)

// Sizes of the worst inputs.
const (
	deep      = 40     // levels of the input for a recursive schema: 1 kB
	each      = 10_000 // elements, of which each is compared with every one of filtered
	filtered  = 30_000 // numbers: 80 kB with the elements
	members   = 20_000 // numbers that are looked up in their own list: 109 kB
	followers = 8      // of one page of the console
	refusals  = 10_000 // requests without a token
)

// worstAim is how much longer the jobs of others may take meanwhile.
const worstAim = 2

// worst is something expensive that is asked of the process again and again.
type worst struct {
	name  string
	flows []*flow.Flow
	once  func(ctx context.Context, rt *quipu.Runtime, n int) error
}

// worsts measures how long the jobs of others take while somebody asks for the most expensive
// things that input can ask for, one after another.
func (b *bench) worsts(ctx context.Context) error {
	for _, w := range []worst{
		recursion(), comparisons(), lookups(),
		{name: fmt.Sprintf("a page of the console, followed by %d", followers), once: followed},
		{name: fmt.Sprintf("%d requests without a token", refusals), once: refused},
	} {
		if err := b.beside(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// beside measures jobs of one step, alone and beside the worst.
func (b *bench) beside(ctx context.Context, x worst) (err error) {
	const callers = 10
	space := b.space()
	defer func() { err = errors.Join(err, b.drop(ctx, space)) }()
	jobs := work{
		name: x.name, flows: append([]*flow.Flow{linear(1)}, x.flows...), flow: "w1", steps: 1, callers: callers,
		jobs: max(callers, b.scaled(4000)), space: space,
	}
	rt, stop, err := b.open(ctx, space, &jobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	alone, err := b.timed(ctx, rt, &jobs)
	if err != nil {
		return err
	}
	b.n++ // keys of their own
	asked, began := 0, make(chan struct{})
	meanwhile, enough := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error {
		for ; meanwhile.Err() == nil || asked == 0; asked++ {
			if asked == 0 {
				close(began)
			}
			if err := x.once(ctx, rt, asked); err != nil {
				return err
			}
		}
		return nil
	})
	<-began
	others, err := b.timed(ctx, rt, &jobs)
	enough()
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	longer, missed := others.took.Seconds()/alone.took.Seconds(), ""
	if longer > worstAim {
		missed = "; MISSED"
	}
	b.print(line{
		"jobs beside " + x.name + " ÷ alone", longer, "times",
		fmt.Sprintf("p99 %s ms, alone %s ms; it was asked for %d times; aim ≤ %d%s",
			figure(millis(others.laps.quantile(0.99))), figure(millis(alone.laps.quantile(0.99))), asked, worstAim,
			missed),
	})
	return nil
}

// fails starts a job with an input for which it has to fail.
func fails(flow string, input any) func(context.Context, *quipu.Runtime, int) error {
	return func(ctx context.Context, rt *quipu.Runtime, n int) error {
		job, err := rt.Start(ctx, flow, fmt.Sprintf("%s-%d", flow, n), input)
		if err != nil {
			return err
		}
		_, err = rt.Wait(ctx, job)
		if _, failed := errors.AsType[*quipu.JobError](err); failed {
			return nil
		}
		return fmt.Errorf("the job did not fail: %w", err)
	}
}

// recursion is an input for a schema whose alternatives look alike at every level.
func recursion() worst {
	const node = `{oneOf: [
		{type: object, required: [op, args], properties: {op: {const: and}, args: {type: array, items: {$ref: "#/$defs/node"}}}},
		{type: object, required: [op, args], properties: {op: {const: or}, args: {type: array, items: {$ref: "#/$defs/node"}}}},
		{type: object, required: [var], properties: {var: {type: string}}}]}`
	child := parsed(`{flow: recursive, version: "1", input: {$defs: {node: ` + node + `}, properties: {where: {$ref: "#/$defs/node"}}},
		activities: {start: {type: trigger}, never: {type: worker, topic: noop, input: "${ start.output.missing }"}}, transitions: {start: [never]}}`)
	where := strings.Repeat(`{"op":"or","args":[`, deep) + `{"var":"a"}` + strings.Repeat(`]}`, deep)
	return worst{
		name: "1 kB for a recursive schema", flows: []*flow.Flow{child, parsed(`{flow: asks, version: "1", activities: {start: {type: trigger},
			it: {type: await, flow: recursive, input: "${ start.output }"}}, transitions: {start: [it]}}`)},
		once: fails("asks", json.RawMessage(`{"where":`+where+`}`)),
	}
}

// comparisons are elements that each look through a list.
func comparisons() worst {
	return worst{
		name: "80 kB of each and filter",
		flows: []*flow.Flow{one("comparisons", `{type: worker, topic: noop, each: start.output.l,
			input: {x: "${ start.output.p.filter(y, y == item).size() }"}}`)},
		once: fails("comparisons", map[string][]int{"l": make([]int, each), "p": make([]int, filtered)}),
	}
}

// lookups look each element of a list up in the list.
func lookups() worst {
	l := make([]int, members)
	for i := range l {
		l[i] = i
	}
	return worst{
		name:  "109 kB of lists",
		flows: []*flow.Flow{one("lookups", `{type: worker, topic: noop, input: {x: "${ size(start.output.l.filter(x, x in start.output.l)) }"}}`)},
		once:  fails("lookups", map[string][]int{"l": l}),
	}
}

// serve serves the console and the API of a runtime on loopback. local: nobody needs a token.
func serve(rt *quipu.Runtime, local *access.Who) *httptest.Server {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil)) // what it costs to write lines is a part of it
	guard := access.New(access.Config{Local: local, Tokens: rt.Tokens().Who, Logger: quiet})
	mux := http.NewServeMux()
	mux.Handle("/api/", api.New(rt, api.Config{Guard: guard, Build: "bench", Logger: quiet}))
	mux.Handle("/", console.New(rt, console.Config{Guard: guard, Build: "bench", Logger: quiet}))
	s := httptest.NewUnstartedServer(nil)
	s.Config = access.Server(guard.Wrap(mux), quiet)
	s.Start()
	return s
}

// followed has several browsers follow the list of jobs for a while.
func followed(ctx context.Context, rt *quipu.Runtime, _ int) error {
	s := serve(rt, &access.Who{Name: "bench", Role: access.Operator})
	defer s.Close()
	ctx, enough := context.WithTimeout(ctx, time.Second)
	defer enough()
	g, within := errgroup.WithContext(ctx)
	for range followers {
		g.Go(func() error {
			status, err := get(within, s.URL+"/live?page="+url.QueryEscape("/jobs"), "")
			if ctx.Err() != nil || err == nil && status == http.StatusOK {
				return nil
			}
			return fmt.Errorf("a follower was answered %d: %w", status, err)
		})
	}
	return g.Wait()
}

// refused asks again and again with a token that nobody has given out.
func refused(ctx context.Context, rt *quipu.Runtime, _ int) error {
	s := serve(rt, nil)
	defer s.Close()
	for range refusals {
		status, err := get(ctx, s.URL+"/api/v1/jobs/"+strings.Repeat("x", 1000), access.NewToken())
		if err != nil || status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
			return fmt.Errorf("a stranger was answered %d: %w", status, err)
		}
	}
	return nil
}

// get reads an answer to its end.
func get(ctx context.Context, address, token string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
