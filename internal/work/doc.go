// Package work is the runtime that runs the handlers of a registry; package workers is what their
// authors call.
//
// Runtime takes requests from the bus, one goroutine for each, up to the concurrency of
// the topic (T11). A first delivery costs no round trip to the store. A request that was
// delivered or published before is leased first, so that only one of two runs goes on,
// and a handler that kills its process is counted (E9). While a handler runs, its
// delivery is kept in progress; a long run also takes its lease. The response goes to the
// lane of the job, and the request is acked once the bus has the response. In all other
// cases the request is handed back (T3).
//
// A durable function runs by package durable; function.run turns the outcome into a response.
// Replay runs a handler against a record instead of a store, and Fits compares one with an open
// request.
package work
