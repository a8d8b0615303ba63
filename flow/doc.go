// Package flow holds definitions of flows: what a user writes as YAML, as JSON
// or in Go, validated, brought to one canonical form and compiled (spec 5.1).
//
// [Parse], [Builder.Build] and [FromCanonical] take the same way: the source
// becomes a tree of nodes with positions, the tree a definition, the definition
// a graph with compiled expressions. Every step reports all faults that it
// finds ([Faults]), each with its place, and a flow with a fault does not exist.
//
// A [Flow] is immutable and safe for concurrent use. Its digest is the SHA-256
// of its canonical form, in which defaults are spelled out and the order of
// keys is gone: the same flow has the same digest whether it came from YAML,
// JSON or Go. Activities are numbered along the graph, breadth first from the
// trigger, so that their order, too, follows from the canonical form.
//
// Nothing here does I/O or knows the time. A flow's expressions are evaluated
// against a [Scope], which is asked for the results that they mention and for
// nothing else (J2): [Activity.InputNeeds], [Activity.MapNeeds],
// [Transition.Needs] and [Flow.OutputNeeds] name them beforehand. Numbers are
// exact; internal/expr says how.
//
// Transitions make a graph without cycles: a loop is made by a cycle activity.
// What expressions may mention is what leads to their activity; addresses follow
// the dominator tree (1.9, 1.10), which [Activity.Parent] and [Activity.Depth]
// give.
//
// The reference of all keys with defaults and limits is docs/flow.md.
package flow
