// Package expr compiles and evaluates the expressions of a flow: CEL with exact
// numbers over canonical JSON (spec 5.1).
//
// CEL's own numbers are 64-bit integers and doubles that do not mix. Here a
// number is one type: an int64 when it is whole and in range, otherwise a
// decimal; the two forms never hold the same value, so that CEL's equality and
// indexing work unchanged. The type checker knows the one type as "int". The
// operators + - * / % and the comparisons are declared again over it in an
// environment that leaves CEL's own and everything that makes a double out, and
// literals such as 0.1 get their exact value from the text of the expression.
// No double exists at run time.
//
// [Compiler.Compile] parses an expression, finds what it mentions (a name and a
// field: charge.output, job.id), asks the caller whether that may be mentioned,
// and puts numbered variables in its place. One environment therefore serves
// every flow, and expressions that differ only in names share a program. A
// plain path (charge.output.total) needs no CEL at run time: it is read from
// the JSON text, and its value goes into the result as it stands.
//
// [CompileTemplate] does the same for a mapped value, JSON in which strings
// hold expressions: what is constant is written once, at compile time.
package expr
