// Package usercode reads values that the code of users made: the errors that handlers return, and
// what they panic with. Each method of such a value may panic, may return 100 MB, or may lead in a
// circle. So a value is read once, within the run that it belongs to, by Text, Value, Chain and As.
// They return, whatever the methods do, and what they return is bounded. Whoever is behind the run
// (logs, spans, the response) has only text.
//
// What no recover can stop ends the process all the same, and is outside this package: a method
// that calls itself for ever (a stack overflow), and a map that is written while it is read.
package usercode
