package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quipu-journal/quipu"
)

// status returns the HTTP status for an error of a call: one for each thing that the client can
// do about it.
func status(err error) int {
	var (
		taken  *quipu.ConflictError
		failed *quipu.JobError
		parked *quipu.ParkedError
	)
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, quipu.ErrAnotherDatabase), // nothing was done: a person recovers the space
		errors.Is(err, quipu.ErrLogin): // nothing was done: the login lacks a role
		return http.StatusInternalServerError
	case errors.Is(err, quipu.ErrUnavailable), // nothing was done: call again
		errors.Is(err, quipu.ErrUnknown), // it may have been: call again under the same key
		errors.Is(err, quipu.ErrNotReady), errors.Is(err, quipu.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.As(err, &failed): // the job has ended: its code is the answer
		return failed.Code
	case errors.As(err, &parked): // somebody decides
		return http.StatusAccepted
	case errors.As(err, &taken), // the key has another job
		errors.Is(err, quipu.ErrStale),        // somebody was faster: look again
		errors.Is(err, quipu.ErrResume),       // the error says what to do first
		errors.Is(err, quipu.ErrVersionTaken): // give what changed a new version
		return http.StatusConflict
	case errors.Is(err, quipu.ErrTombstone): // it was there, and has expired
		return http.StatusGone
	case errors.Is(err, quipu.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, quipu.ErrInput), errors.Is(err, quipu.ErrKey), errors.Is(err, quipu.ErrRejected),
		errors.Is(err, quipu.ErrRefused):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// Errors of calls, and what to do with each.
func Example_errors() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	_, err := rt.Start(ctx, "approval", "order-1", nil)
	must(err)
	say := func(_ any, err error) { fmt.Println(status(err), err) }

	say(rt.Start(ctx, "approval", "order-1", 7))
	say(rt.Start(ctx, "approval", "", nil))
	say(rt.Start(ctx, "approval", "order-2", make(chan int)))
	say(rt.Find(ctx, "order-2"))
	say(rt.Signal(ctx, "Order Reviewed", "order-1", nil))
	say(rt.Interrupt(ctx, quipu.Job{Key: "order-1"}, quipu.IdempotencyKey("")))
	say(rt.Resume(ctx, quipu.Job{Key: "order-1"}))
	say(nil, rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: 7, Verdict: quipu.Retry}))
	_, err = rt.Interrupt(ctx, quipu.Job{Key: "order-1"}, quipu.Reason("withdrawn"))
	must(err)
	say(rt.Wait(ctx, quipu.Job{Key: "order-1"}))
	// Output:
	// 409 the key "order-1" has a job with another input: take another key
	// 400 refused key: flow approval takes the caller's key (identity: caller), and none was given
	// 400 refused input for flow approval, key "order-2": json: unsupported type: chan int
	// 404 job "order-2": not found: no job has the key "order-2" in space default
	// 400 refused input: signal: topic "Order Reviewed": it is parts of a-z, 0-9, _ and - joined by dots, as in a flow
	// 400 refused input: interrupt: an idempotency key is 1 to 512 bytes of UTF-8 without U+0000, this one is ""
	// 409 job "order-1": refused to resume: it is open: `quipu why` says what it waits for
	// 404 not found: dead letter 7 in space default
	// 410 job "order-1" interrupted with code 410: withdrawn
}

// A value over a limit is refused before anything is done. The error names the limit.
func Example_limits() {
	fmt.Println("job:", quipu.MaxKey, "bytes of key,", quipu.MaxInput, "of input,", quipu.MaxTags, "tags of", quipu.MaxTag)
	fmt.Println("start:", quipu.MaxStarts, "in a call, up to", quipu.MaxDelay, "ahead")
	fmt.Println("signal:", quipu.MaxSignalTopic, "bytes of topic,", quipu.MaxSignalKey, "of key,", quipu.MaxPayload, "of payload")
	fmt.Println("signal: kept for", quipu.DefaultKeep, "or up to", quipu.MaxKeep)
	fmt.Println("idempotency key:", quipu.MaxIdempotencyKey, "bytes")
	fmt.Println("history:", quipu.MaxHistory, "entries")

	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	_, err := rt.Start(ctx, "approval", strings.Repeat("k", quipu.MaxKey+1), nil)
	fmt.Println(errors.Is(err, quipu.ErrKey), err)
	_, err = rt.Start(ctx, "approval", "order-1", strings.Repeat("x", quipu.MaxInput))
	fmt.Println(errors.Is(err, quipu.ErrInput), err)
	// Output:
	// job: 512 bytes of key, 1048576 of input, 10 tags of 64
	// start: 500 in a call, up to 87600h0m0s ahead
	// signal: 128 bytes of topic, 512 of key, 262144 of payload
	// signal: kept for 24h0m0s or up to 720h0m0s
	// idempotency key: 512 bytes
	// history: 200000 entries
	// true refused key: 513 bytes, the limit is 512: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"…
	// true refused input for flow approval, key "order-1": the input has 1048578 bytes in its canonical form, the limit is 1048576
}
