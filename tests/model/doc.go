// Package model holds the whole runtime to a plain reading of its flows.
//
// A generator draws legal flows of every kind of activity: trees, joins, loops,
// lists, races, children, signals, interrupts. An interpreter that knows nothing
// of messages, ledgers or transactions reads each flow's text and says how its
// jobs must end, what they give, and what ran how often with which input. A world
// of one or two engines over the memory store and a bus that loses, doubles and
// reorders runs the same flow, in every mode of commits, in a bubble of
// testing/synctest. Both must agree, the invariants of the protocol must hold at
// every look, and the verifier must prove every journal.
//
// What runs side by side in a flow ends in any order. So the interpreter keeps,
// for everything that it computes, what has certainly happened before it; where a
// result depends on an order that nobody decides, it says so, and that part is
// not compared.
//
// The flag -rapid.checks is the number of flows for each kind of world. A failure prints the
// smallest flow that was found, with its inputs and its world, and the arguments
// that draw it again; how its messages meet is the scheduler's, so it may need a
// few runs. With QUIPU_MODEL_TRACE every flow is printed before it runs, for a run
// that ends in a crash.
package model
