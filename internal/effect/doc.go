// Package effect carries out the effects of a handler's run (spec 3.1); package effects is what
// handlers call.
//
// The runtime gives each run of a handler a Session, and puts it into the handler's context (With).
// A call of effects.Do finds it there by package port. The Session looks for the recorded outcome of
// the call, or records its start, calls the body and records how it ended. What the effects say
// about the run, whatever the handler returned, is in its Verdict.
//
// In a durable function each call has a place (E15), which is checked before the call goes outside.
// Placer and Place are the port for that; package durable implements it. OwnCall and the methods that
// take its calls are for effects that package durable makes itself.
package effect
