// Package flow holds definitions of flows. A user writes one as YAML, as JSON or in Go;
// it is validated, brought to one canonical form and compiled (spec 5.1).
//
// [Parse], [Builder.Build] and [FromCanonical] go through the same steps: the source
// becomes a tree of nodes with positions, the tree a definition, the definition a graph
// with compiled expressions. Every step reports all its faults ([Faults]) with their
// places. A flow with a fault is never returned.
//
// A [Flow] is immutable and safe for concurrent use. Its digest is the SHA-256 of its
// canonical form, in which defaults are spelled out and keys are sorted. So the same flow
// has the same digest whether it came from YAML, JSON or Go. Activities are numbered
// breadth first from the trigger, so their order also follows from the canonical form.
//
// The package does no I/O and knows no time. Expressions are evaluated against a [Scope],
// which is asked only for the results that they mention (J2): [Activity.InputNeeds],
// [Activity.MapNeeds], [Transition.Needs] and [Flow.OutputNeeds] name those in advance.
// Numbers are exact; internal/expr says how.
//
// Transitions make a graph without cycles; only a cycle activity makes a loop. An
// expression may mention the ancestors of its activity. Addresses follow the dominator
// tree (1.9, 1.10), see [Activity.Parent] and [Activity.Depth].
//
// The reference of all keys with defaults and limits is docs/flow.md.
package flow
