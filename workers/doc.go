// Package workers holds handlers and the runtime that runs them.
//
//	reg := workers.New()
//	workers.Handle(reg, "payments.charge", func(ctx context.Context, in Charge) (Receipt, error) { … })
//
// A handler is a function from JSON to JSON under a topic. What it returns is the
// response to a request: a result, or an error whose kind says what follows (Fail,
// Fatal, RetryAfter, any other error, a panic, a timeout; spec 3.4). What it does
// outside it does under effects.Do; a handler can run twice (C9).
//
// A durable function (HandleDurable) may also wait: Sleep, Await, Child. It is run
// from its top again when what it waits for has come, and gets what is recorded of
// the runs before (spec 3.5); docs/functions.md is the guide. Package durable runs
// it, function.run makes a response of what that came to, and Replay gives it a
// record instead of a store.
//
// Runtime takes requests from the bus, one goroutine for each, never more of a
// topic than its concurrency (T11). A first delivery costs no round trip to the
// store; a request that was delivered or published before is leased first, so
// that of two runs one goes on, and a handler that kills its process is counted
// (E9). While a handler runs, its request is kept from coming again, and its lease
// is extended. The response goes to the lane of the job, and the request is acked
// when the bus has the response; everything else hands it back (T3).
package workers
