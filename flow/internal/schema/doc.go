// Package schema checks JSON against a JSON Schema with work that is counted and bounded.
//
// A library parses and compiles schemas ([Compile]), knows their drafts and resolves their
// references. What it compiles is turned into rules here, and evaluated here ([Schema.Check]):
//
//   - The outcome of a rule that can come more than once at a value is kept, by rule, value and
//     dynamic scope. So recursive combinations (oneOf, anyOf, if, …) cost what their values and
//     rules cost, and not a power of it.
//   - Units are counted before work is done: for each rule at each value, and for what its
//     keywords touch. They follow from schema and value alone; no order of a Go map has a part.
//     Each kept outcome is paid for, so the memory is bounded as well.
//   - Equal JSON has equal canonical bytes, so const, enum and uniqueItems compare and hash bytes.
//   - Patterns run on a machine that counts its steps ([Pattern]).
//
// The verdict is that of the library: a property test holds it to that, for all keywords.
//
// What does not fit is listed by a second walk ([Misfit]). It has a limit of its own, lists few
// problems, and of the branches of a failed anyOf or oneOf only those that came nearest.
package schema
