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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// decision is what a person found out about a payment of unknown outcome.
func decision(l quipu.DeadLetter) quipu.Decision {
	d := quipu.Decision{DeadLetter: l.ID, Who: "ann", Reason: "asked the bank"}
	switch l.Job.Key {
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
		if i < 0 || topics[i].Queued == 0 || topics[i].Queued == quipu.Unknown { // not there yet
			time.Sleep(10 * time.Millisecond)
			continue
		}
		t := topics[i]
		fmt.Println(t.Name, "queued:", t.Queued, "running:", t.Running, "served by:", len(t.Processes), "processes, oldest known:", t.Oldest > 0, "served:", t.Served())
		break
	}
	// Output: bank.charge queued: 1 running: 0 served by: 0 processes, oldest known: true served: false
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
		ev, err := rt.Evidence(ctx, l.Job, "charge")
		must(err)
		fmt.Println(l.Job.Key, outcome(ev.Effects[len(ev.Effects)-1])) // one that was not done is followed by the next
		must(rt.Operator().Decide(ctx, decision(l)))
		out, err := rt.Wait(ctx, l.Job)
		fmt.Println(l.Job.Key, string(out), err)
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

// Roles of a space in processes of their own: those with handlers scale apart from the engine.
func ExampleRole() {
	ctx, stop := context.WithCancel(context.Background())
	servers := &exampleT{}
	defer servers.end()
	reg := workers.New()
	workers.Handle(reg, "post.price", postage)
	cfg := exampleConfig(servers)
	done := make(chan error, 2)
	var last *quipu.Runtime
	for _, roles := range [][]quipu.Role{{quipu.RoleEngine, quipu.RoleSchedule}, {quipu.RoleWorkers}} {
		if cfg.Roles = roles; slices.Contains(roles, quipu.RoleWorkers) {
			cfg.Workers = reg
		}
		rt, err := quipu.Open(ctx, cfg)
		must(err)
		defer rt.Close()
		go func() { done <- rt.Run(ctx) }()
		last = rt
	}
	cents, err := priceOf(ctx, last, "parcel-1", Parcel{Grams: 500})
	fmt.Println(cents, err)
	stop()
	fmt.Println(<-done, <-done)
	// Output:
	// 250 <nil>
	// <nil> <nil>
}

// The owner sets up a space once: whether it keeps keys or digests of keys, how long closed jobs are
// kept, and database roles with the least rights that a process needs.
func ExampleRuntime_Roles() {
	ctx := context.Background()
	rt, dsn, end := exampleOf(quipu.Config{Space: "books"})
	defer end()
	must(rt.KeepPrivateKeys(ctx))
	fmt.Println(rt.PrivateKeys(ctx))
	must(rt.SetExpireDefault(ctx, 90*24*time.Hour))
	fmt.Println(rt.ExpireDefault(ctx))

	must(rt.Roles(ctx))
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, "select rolname from pg_roles where rolname like '%books%' order by 1")
	must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	fmt.Println(names, err)
	// Output:
	// true <nil>
	// 2160h0m0s <nil>
	// [quipu_books_client quipu_books_engine quipu_books_operator quipu_books_owner quipu_books_retention quipu_books_verifier quipu_books_worker] <nil>
}

// A handler's log names its job, activity and attempt by itself.
func ExampleLogger() {
	ctx := context.Background()
	reg := workers.New()
	workers.Handle(reg, "post.price", func(ctx context.Context, p Parcel) (int, error) {
		quipu.Logger(ctx).Warn("no address: the price is a guess", "grams", p.Grams)
		return postage(ctx, p)
	})
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
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
