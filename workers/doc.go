// Package workers holds handlers and the runtime that runs them.
//
//	reg := workers.New()
//	workers.Handle(reg, "payments.charge", func(ctx context.Context, in Charge) (Receipt, error) { … })
//
// A handler is a function from JSON to JSON under a topic. It answers a request with a
// result, or with an error whose kind says what follows (Fail, Fatal, RetryAfter, any
// other error, a panic, a timeout; spec 3.4). A handler can run twice (C9), so its calls
// to the outside belong in effects.Do.
//
// A durable function (HandleDurable) may also wait: Sleep, Await, Child. When its wait is
// over it runs again from its top, and gets what earlier runs recorded (spec 3.5);
// docs/functions.md is the guide. Package durable runs it, function.run turns the outcome
// into a response, and Replay runs it against a record instead of a store.
//
// Runtime takes requests from the bus, one goroutine for each, up to the concurrency of
// the topic (T11). A first delivery costs no round trip to the store. A request that was
// delivered or published before is leased first, so that only one of two runs goes on,
// and a handler that kills its process is counted (E9). While a handler runs, its
// delivery is kept in progress; a long run also takes its lease. The response goes to the
// lane of the job, and the request is acked once the bus has the response. In all other
// cases the request is handed back (T3).
package workers
