// Package console is the web page of a space (O6–O9): what its jobs did, why they stand still, and
// what to press. New makes an http.Handler over a *quipu.Runtime.
//
// Every page is made by the server from templates and embedded files, and asks no other host. What
// a page shows is read by the Runtime, by internal/look and by explain, history and replay, as in
// the terminal. A page works without scripts; with them it follows the space by itself and takes
// keys (docs/console.md).
//
// Who may ask is decided in one place, guard: as it is, whoever reaches a loopback address.
package console
