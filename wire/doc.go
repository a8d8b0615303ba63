// Package wire is the JSON that travels in messages: the request to a worker,
// its response, and the hints to the engine (T4, T6). The engine's hints carry
// no payload, the row has it; a request carries its input up to MaxInline,
// otherwise the worker reads it from the row; a response carries its output up
// to MaxInline, otherwise its digest.
//
// Decoders refuse unknown versions, over-long fields and outputs that are no
// canonical JSON; they never repair.
package wire
