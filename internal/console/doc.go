// Package console is the web page of a space (O6–O9): what its jobs did, why they stand still, and
// what to press. New makes an http.Handler over a *quipu.Runtime.
//
// Every page is made by the server from templates and embedded files, and asks no other host. The
// page of a job prints its view.Job, as API and terminal do, from the reader of the Runtime: what is
// its own is what is chosen, how much is shown, and the pictures. A page works without scripts; with
// them it follows the space by itself and takes keys (docs/console.md).
//
// Who may ask is decided in one place, guard: as it is, whoever reaches a loopback address.
package console
