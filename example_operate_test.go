package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// decision is what a person found out about a payment of unknown outcome.
func decision(l view.DeadLetter) quipu.Decision {
	d := quipu.Decision{DeadLetter: l.ID, Who: "ann", Reason: "asked the bank"}
	switch l.Key {
	case "order-1": // they do not know it: it was not done, and is done now
		d.Verdict = quipu.Retry
	case "order-2": // it is in their books: this is what the call would have returned
		d.Verdict, d.Result = quipu.Done, "receipt-2"
	case "order-3": // it was settled otherwise: this is what the handler would have returned
		d.Verdict, d.Result = quipu.Resolve, "in cash"
	default:
		d.Verdict, d.Code, d.Message = quipu.Fail, 402, "the customer has left"
	}
	return d
}

// Which topics have work that nobody serves: here a worker is missing.
func ExampleRuntime_Topics() {
	ctx := context.Background()
	rt, _, end := example(pays)
	defer end()
	_, err := rt.Start(ctx, "pays", "order-1", nil)
	must(err)
	for {
		topics, err := rt.Topics(ctx)
		must(err)
		i := slices.IndexFunc(topics, func(t quipu.Topic) bool { return t.Name == "bank.charge" })
		if i < 0 || topics[i].Queued == 0 || topics[i].Queued == quipu.QueueUnknown { // not there yet
			time.Sleep(10 * time.Millisecond)
			continue
		}
		t := topics[i]
		fmt.Println(t.Name, "queued:", t.Queued, "running:", t.Running, "served by:", len(t.Processes), "processes, oldest known:", t.Oldest > 0, "served:", t.Served())
		break
	}
	// Output: bank.charge queued: 1 running: 0 served by: 0 processes, oldest known: true served: false
}

// What happens in the space now, and what is stuck in it: nothing but a topic that nobody serves.
func ExampleRuntime_Space() {
	ctx := context.Background()
	rt, _, end := example(pays)
	defer end()
	_, err := rt.Start(ctx, "pays", "order-1", nil)
	must(err)
	for {
		space, err := rt.Space(ctx)
		must(err)
		if space.Processes["engine"] == 0 || len(space.Stuck) == 0 { // its process or its request is not there yet
			time.Sleep(10 * time.Millisecond)
			continue
		}
		fmt.Println(space.Processes["engine"], "engine;", space.Flows[0].Flow, "has", space.Flows[0].Open, "open job")
		fmt.Println(space.Stuck[0].What, space.Stuck[0].N)
		break
	}
	// Output:
	// 1 engine; pays has 1 open job
	// requests that nobody serves: bank.charge 1
}

// An operator's inbox: the dead letters of a space, and the four verdicts.
func ExampleOperator_DeadLetters() {
	ctx := context.Background()
	reg := workers.New()
	cut := true
	workers.Handle(reg, "bank.charge", func(ctx context.Context, _ any) (string, error) {
		return effects.Do(ctx, "charge", func(context.Context) (string, error) {
			if cut {
				return "", errors.New("connection cut off")
			}
			return "receipt", nil
		})
	})
	rt, _, end := exampleOf(quipu.Config{Workers: reg, WaitLook: 20 * time.Millisecond}, pays)
	defer end()
	for _, key := range []string{"order-1", "order-2", "order-3", "order-4"} {
		job, err := rt.Start(ctx, "pays", key, nil)
		must(err)
		_, err = rt.Wait(ctx, job, quipu.UntilParked(true))
		fmt.Println(key, "waits for a person:", errors.As(err, new(*quipu.ParkedError)))
	}
	cut = false

	letters, err := rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Topic: "bank.charge", Reason: "parked"})
	must(err)
	slices.Reverse(letters) // the oldest first
	for _, l := range letters {
		ev, err := rt.Evidence(ctx, quipu.Job{ID: l.Job}, "charge")
		must(err)
		fmt.Println(l.Key, outcome(ev.Effects[len(ev.Effects)-1])) // one that was not done is followed by the next
		must(rt.Operator().Decide(ctx, decision(l)))
		out, err := rt.Wait(ctx, quipu.Job{ID: l.Job})
		fmt.Println(l.Key, string(out), err)
	}
	err = rt.Operator().Decide(ctx, decision(letters[0]))
	fmt.Println("somebody was faster:", errors.Is(err, quipu.ErrStale))
	dropped, err := rt.Operator().DroppedLetters(ctx)
	fmt.Println("letters of strangers that were dropped:", dropped, err)
	// Output:
	// order-1 waits for a person: true
	// order-2 waits for a person: true
	// order-3 waits for a person: true
	// order-4 waits for a person: true
	// order-1 under way, or nobody knows: ask the other side
	// order-1 "receipt" <nil>
	// order-2 under way, or nobody knows: ask the other side
	// order-2 "receipt-2" <nil>
	// order-3 under way, or nobody knows: ask the other side
	// order-3 "in cash" <nil>
	// order-4 under way, or nobody knows: ask the other side
	// order-4  job "order-4" failed with code 402: the customer has left
	// somebody was faster: true
	// letters of strangers that were dropped: 0 <nil>
}

// probe answers the readiness probe of a process: 200 while it takes work.
func probe(rt *quipu.Runtime) int {
	w := httptest.NewRecorder()
	http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rt.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
	return w.Code
}

// The life of a process: its roles, when it is ready, and which other processes live.
func ExampleRuntime_Check() {
	servers := &exampleT{}
	defer servers.end()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	cfg := exampleConfig(servers)
	cfg.Name, cfg.Build, cfg.Workers = "shop-1", "v1.4.2", reg
	// Retention runs in a process of its own, with the rights for it.
	cfg.Roles = slices.DeleteFunc(quipu.AllRoles(), func(r quipu.Role) bool { return r == quipu.RoleRetention })
	rt, err := quipu.Open(context.Background(), cfg)
	must(err)

	ctx, stop := context.WithCancel(context.Background()) // a program: signal.NotifyContext
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	<-rt.Ready()
	fmt.Println("ready:", probe(rt))
	living, err := rt.Processes(ctx)
	must(err)
	for _, p := range living {
		fmt.Println(p.Name, p.Build, p.Roles, p.Topics, "seen lately:", time.Since(p.Seen) < time.Minute)
	}

	stop() // it drains
	fmt.Println("drained:", <-done)
	fmt.Println("drained:", probe(rt), errors.Is(rt.Check(context.Background()), quipu.ErrNotReady))
	fmt.Println("once more:", errors.Is(rt.Run(context.Background()), quipu.ErrRun))
	rt.Close()
	_, err = rt.Wait(context.Background(), quipu.Job{ID: [16]byte{1}})
	fmt.Println("closed:", errors.Is(err, quipu.ErrClosed))
	// Output:
	// ready: 200
	// shop-1 v1.4.2 [engine workers schedule] [echo fail http sleep] seen lately: true
	// drained: <nil>
	// drained: 503 true
	// once more: true
	// closed: true
}

// A handler's log names its job, activity and attempt by itself.
func ExampleLogger() {
	ctx := context.Background()
	reg := workers.New()
	workers.Handle(reg, "post.price", func(ctx context.Context, p Parcel) (int, error) {
		quipu.Logger(ctx).Warn("no address: the price is a guess", "grams", p.Grams)
		return postage(ctx, p)
	})
	log := slog.New(slog.NewTextHandler(os.Stdout,
		&slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if slices.Contains([]string{"time", "id", "address"}, a.Key) { // for a short line
				return slog.Attr{}
			}
			return a
		}}))
	rt, _, end := exampleOf(quipu.Config{Workers: reg, Logger: log})
	defer end()
	_, err := rt.Call(ctx, "post.price", "parcel-1", Parcel{Grams: 500})
	must(err)
	// Output:
	// level=WARN msg="no address: the price is a guess" topic=post.price job=parcel-1 activity=call turn=1 attempt=1 grams=500
}

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
		fmt.Println(l.Key, l.Topic, l.Reason, l.Kind == journal.MessageResponse)
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
func help(reason view.LetterReason) string {
	switch reason {
	case quipu.ReasonParked, quipu.ReasonConfirm, quipu.ReasonResultMisfit:
		return "about an effect: look outside"
	case quipu.ReasonNondeterminism, quipu.ReasonUndo, quipu.ReasonRuns:
		return "about a handler: fix it, then retry"
	case quipu.ReasonStuck, quipu.ReasonSlow, quipu.ReasonLoads, quipu.ReasonRefused, quipu.ReasonForeign,
		quipu.ReasonUndecodable, quipu.ReasonChanged, quipu.ReasonUnbegun:
		return "about the message: its text says which"
	}
	return "unknown to this version"
}

// The tables of a job are compared with its journal. What differs is written anew from the
// journal, with an entry that says who decided and why.
func ExampleOperator_Fsck() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	job, err := rt.Start(ctx, "approval", "order-42", map[string]int{"total": 1})
	must(err)

	var found quipu.Findings
	found, err = rt.Operator().Fsck(ctx, job.ID)
	must(err)
	for _, d := range found.Differences {
		var d quipu.Difference = d
		fmt.Println(d.Table, d.Row, d.Column, "is", d.Stored, "and not", d.Journal)
	}
	fmt.Println(found.Job.Key, found.State, len(found.Differences), found.Broken == "")
	if found.State == "quarantined" && found.Broken == "" {
		_, err = rt.Operator().Repair(ctx, job.ID, "ann", "the disk was replaced")
		must(err)
	}
	_, err = rt.Operator().Repair(ctx, job.ID, "ann", "to be sure")
	fmt.Println(errors.Is(err, quipu.ErrRepair), err)
	// Output:
	// order-42 open 0 true
	// true job "order-42": refused to repair: it is open: only a quarantined or a closed job is repaired
}

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
	for info := new(view.Job); len(info.Waits) == 0; {
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

// Keys are rotated in the running space. A worker in another language is given the key of its
// topic.
func ExampleKeys() {
	ctx := context.Background()
	rt, _, end := example(`{flow: one, version: "1", activities: {start: {type: trigger}}}`, nil)
	defer end()

	id, err := rt.Keys().Rotate(ctx, false)
	must(err)
	all, err := rt.Keys().List(ctx)
	must(err)
	fmt.Println("new key:", id, "keys:", len(all), "the old one holds for a day:", !all[0].Ends.IsZero())
	text, err := rt.Keys().Topic(ctx, "labels.print")
	must(err)
	fmt.Println("QUIPU_TOPIC_KEY begins with", strings.Split(text, ":")[0])

	must(rt.Keys().Switch(ctx, false)) // where a worker cannot have a key
	on, err := rt.Keys().On(ctx)
	must(err)
	fmt.Println("signed:", on)
	// Output:
	// new key: 2 keys: 2 the old one holds for a day: true
	// QUIPU_TOPIC_KEY begins with 2
	// signed: false
}

// A shop gets a token with which it starts jobs by the HTTP API. When it is not needed any more,
// it is revoked.
func ExampleTokens() {
	ctx := context.Background()
	rt, _, end := example(`{flow: one, version: "1", activities: {start: {type: trigger}}}`, nil)
	defer end()

	token, err := rt.Tokens().Create(ctx, "shop", access.Client, 90*24*time.Hour)
	must(err)
	all, err := rt.Tokens().List(ctx)
	must(err)
	fmt.Println(all[0].Name, "has the role", all[0].Role, "for a time:", !all[0].Ends.IsZero())
	who, holds, err := rt.Tokens().Who(ctx, token)
	must(err)
	fmt.Println("it holds:", holds, "for", who.Name)

	must(rt.Tokens().Revoke(ctx, "shop"))
	_, holds, err = rt.Tokens().Who(ctx, token)
	must(err)
	fmt.Println("it holds:", holds)
	// Output:
	// shop has the role client for a time: true
	// it holds: true for shop
	// it holds: false
}
