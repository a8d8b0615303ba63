// Package expr compiles and evaluates the expressions of a flow: CEL with exact
// numbers over canonical JSON (spec 5.1).
//
// CEL has 64-bit integers and doubles that do not mix. Here there is one type of number:
// an int64 when the value is an integer in range, otherwise a decimal. No value has both
// forms, so that CEL's equality and indexing work unchanged. The type checker knows this
// type as "int". The environment declares the operators + - * / % and the comparisons for
// it, and leaves out CEL's own and everything that makes a double. Literals such as 0.1
// get their exact value from the text of the expression. No double exists at run time.
//
// [Compiler.Compile] parses an expression, finds its mentions (a name and a field:
// charge.output, job.id), asks the caller whether they are allowed, and replaces them by
// numbered variables. So one environment serves every flow, and expressions that differ
// only in names share a program. A plain path (charge.output.total) needs no CEL at run
// time: its value is read from the JSON text and copied unchanged.
//
// [TemplateBuilder] makes a [Template], a mapped value: JSON whose strings contain
// expressions. Its constant parts are written once, at compile time.
package expr
