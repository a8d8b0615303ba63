// Package workers registers handlers, and has what handlers and durable functions call.
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
// docs/functions.md is the guide.
//
// quipu.Config.Workers serves the handlers of a registry. Outside a job a handler is a function like
// any other: package quiputest gives it what it waits for.
package workers
