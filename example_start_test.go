package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

// A job that starts later exists at once: it has its key, appears in lists, and can be
// interrupted. Starts can share options as a slice.
func ExampleStartOption() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	all := []quipu.StartOption{quipu.Version("1"), quipu.Tags{"import:7"}}
	_, err := rt.Start(ctx, "approval", "order-1", nil, append(all, quipu.Delay(90*time.Minute))...)
	must(err)
	_, err = rt.Start(ctx, "approval", "order-2", nil, append(all, quipu.At(time.Now().AddDate(0, 0, 7)))...)
	must(err)
	_, err = rt.Start(ctx, "approval", "order-3", nil, quipu.Delay(quipu.MaxDelay+1))
	fmt.Println(err)

	page, err := rt.Jobs(ctx, quipu.JobFilter{Tags: []string{"import:7"}})
	must(err)
	for _, j := range page.Jobs {
		info, err := rt.Job(ctx, quipu.Job{ID: j.ID})
		must(err)
		start := info.Messages[0] // the one message that is open
		fmt.Println(j.Key, j.State, j.Tags, "starts in", start.Due.Sub(j.Started).Round(time.Minute))
	}
	// Output:
	// refused input: key "order-3": a start is delayed by 0s to 87600h0m0s
	// order-2 open [import:7] starts in 168h0m0s
	// order-1 open [import:7] starts in 1h30m0s
}

// Many starts in one call: each one succeeds or fails alone.
func ExampleRuntime_StartMany() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	_, err := rt.Start(ctx, "approval", "order-2", map[string]int{"total": 5})
	must(err)
	results, err := rt.StartMany(ctx, []quipu.StartRequest{
		{Flow: "approval", Key: "order-1", Input: map[string]int{"total": 1}},
		{Flow: "approval", Key: "order-2", Input: map[string]int{"total": 5}}, // started before: it is that job
		{Flow: "approval", Key: "order-2", Input: map[string]int{"total": 6}},
		{Flow: "aproval", Key: "order-4"},
		{Flow: "approval"},
	})
	must(err) // about the whole call: over quipu.MaxStarts requests
	for i, r := range results {
		var taken *quipu.ConflictError
		switch {
		case errors.As(r.Err, &taken):
			fmt.Println(i, "taken by", taken.Job.Key, taken.Flow, taken.Version, "same input:", taken.SameInput)
		case errors.Is(r.Err, quipu.ErrUnavailable), errors.Is(r.Err, quipu.ErrUnknown):
			fmt.Println(i, "send this request again")
		case r.Err != nil:
			fmt.Println(i, "refused:", r.Err)
		default:
			fmt.Println(i, r.Job.Key, r.Job.Existing)
		}
	}
	// Output:
	// 0 order-1 false
	// 1 order-2 true
	// 2 taken by order-2 approval 1 same input: false
	// 3 refused: flow "aproval": not found: no version of flow aproval in space default: deploy it
	// 4 refused: refused key: flow approval takes the caller's key (identity: caller), and none was given
}

type Parcel struct {
	To    string `json:"to"`
	Grams int    `json:"grams"`
}

func postage(_ context.Context, p Parcel) (int, error) {
	if p.Grams > 30_000 {
		return 0, workers.Fail(422, "too heavy")
	}
	return 200 + p.Grams/10, nil
}

// priceOf gives the call of a topic its types, in one place.
func priceOf(ctx context.Context, rt *quipu.Runtime, key string, p Parcel, options ...quipu.WaitOption) (int, error) {
	return quipu.CallAs[int](ctx, rt, "post.price", key, p, options...)
}

// One handler without a flow: the call has a key, a record, and retries.
func ExampleCallAs() {
	ctx := context.Background()
	reg := workers.New()
	workers.Handle(reg, "post.price", postage)
	rt, _, end := example(approval, reg)
	defer end()

	for range 2 { // the second one is told what the first came to
		cents, err := priceOf(ctx, rt, "parcel-1", Parcel{To: "Rome", Grams: 1500})
		fmt.Println(cents, err)
	}
	_, err := priceOf(ctx, rt, "parcel-1", Parcel{To: "Oslo", Grams: 1500})
	var taken *quipu.ConflictError
	fmt.Println("another input:", errors.As(err, &taken))

	_, err = priceOf(ctx, rt, "parcel-2", Parcel{To: "Rome", Grams: 40_000}, quipu.UntilParked(true))
	var failed *quipu.JobError
	if errors.As(err, &failed) {
		fmt.Println(failed.Code, failed.Cause.Message)
	}
	out, err := rt.Call(ctx, "post.price", "parcel-3", Parcel{To: "Rome"}) // as it is stored
	fmt.Println(string(out), err)
	// Output:
	// 350 <nil>
	// 350 <nil>
	// another input: true
	// 422 too heavy
	// 200 <nil>
}

func greeting(version, words string) string {
	return fmt.Sprintf(`{flow: greet, version: %q, output: %q, activities: {start: {type: trigger}}}`, version, words)
}

// A new version is tried with a few jobs before it becomes active, and is taken back at once.
func ExampleOperator_Activate() {
	ctx := context.Background()
	rt, _, end := example(greeting("1", "hello"))
	defer end()
	greet := func(key string, options ...quipu.StartOption) {
		job, err := rt.Start(ctx, "greet", key, nil, options...)
		must(err)
		words, err := quipu.WaitAs[string](ctx, rt, job)
		fmt.Println(key, words, err)
	}

	operator := rt.Operator()
	done, err := operator.Deploy(ctx, parsed(greeting("2", "good day")), false, "ada")
	fmt.Println("fresh:", done.Fresh, "active:", done.Active, err)
	greet("everybody")
	greet("canary", quipu.Version("2"))
	must(operator.Activate(ctx, "greet", "2", "ada"))
	greet("everybody since")
	must(operator.Activate(ctx, "greet", "1", "ada"))
	greet("everybody again")

	err = rt.Deploy(ctx, parsed(greeting("2", "good evening"))) // it is version 3
	fmt.Println("other content:", errors.Is(err, quipu.ErrVersionTaken))
	err = operator.Activate(ctx, "greet", "3", "ada")
	fmt.Println("not deployed:", errors.Is(err, quipu.ErrNotFound))
	flows, err := rt.Flows(ctx)
	for _, f := range flows {
		fmt.Println(f.Flow, f.Version, "active:", f.Active, err)
	}
	// Output:
	// fresh: true active: false <nil>
	// everybody hello <nil>
	// canary good day <nil>
	// everybody since good day <nil>
	// everybody again hello <nil>
	// other content: true
	// not deployed: true
	// greet 1 active: true <nil>
	// greet 2 active: false <nil>
}

// Flows with the Go types of their input and output, as a package has them.
type (
	wish struct {
		Total int `json:"total"`
	}
	approvedBy struct {
		Approved bool   `json:"approved"`
		By       string `json:"by"`
	}
)

var approvals quipu.TypedFlow[wish, approvedBy] = quipu.FlowOf[wish, approvedBy]("approval")

// The compiler looks after the input and the output of a flow.
func ExampleFlowOf() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	job, err := approvals.Start(ctx, rt, "order-1", wish{Total: 12}, quipu.Tags{"vip"})
	must(err)
	_, err = rt.Signal(ctx, "order.reviewed", job.Key, map[string]bool{"ok": true})
	must(err)
	out, err := approvals.Wait(ctx, rt, job)
	must(err)
	fmt.Println(out.Approved, out.By)

	out, err = approvals.Call(ctx, rt, "order-1", wish{Total: 12}, quipu.Tags{"vip"}) // once more: the same job
	fmt.Println(out.Approved, err)
	_, err = approvals.Call(ctx, rt, "order-1", wish{Total: 13})
	fmt.Println(err)
	options := []quipu.CallOption{quipu.Version("7"), quipu.UntilParked(true)} // of its start, and of its wait
	_, err = approvals.Call(ctx, rt, "order-2", wish{Total: 12}, options...)
	fmt.Println(errors.Is(err, quipu.ErrNotFound))
	// Output:
	// true signal
	// true <nil>
	// the key "order-1" has a job with another input: take another key
	// true
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
	page, err := rt.Jobs(ctx, quipu.JobFilter{Tags: []string{"customer:7"}})
	must(err)
	fmt.Println(len(page.Jobs), page.Jobs[0].Key, page.Jobs[0].State)
	// Output:
	// order-42 false <nil>
	// order-42 true <nil>
	// the key "order-42" has a job with another input: take another key
	// 1 order-42 open
}

// A job starts together with the row that it is about, or not at all.
func ExampleRuntime_StartTx() {
	ctx := context.Background()
	rt, dsn, end := example(approval)
	defer end()
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create table orders (id text primary key)")
	must(err)

	var job quipu.Job
	must(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values ('order-44')"); err != nil {
			return err
		}
		if job, err = rt.StartTx(ctx, tx, "approval", "order-44", nil); err != nil {
			return err
		}
		_, err = rt.SignalTx(ctx, tx, "order.reviewed", "order-44", map[string]any{"ok": false})
		return err
	}))
	out, err := rt.Wait(ctx, job)
	must(err)
	fmt.Println(string(out))
	// Output: {"approved":false,"by":"signal"}
}
