// Package wire is the JSON inside messages: the request to a worker, its response, and
// the hints to the engine (T4, T6). A hint carries no payload, which is in the row; only
// the hint of a response contains the response. A request carries its input up to
// MaxInline; a larger one the worker reads from the row. A response carries its output up
// to MaxInline, otherwise its digest.
//
// Decode makes payloads canonical and refuses JSON that has no canonical form;
// Response.Journal checks limits and members. Neither repairs anything.
package wire
