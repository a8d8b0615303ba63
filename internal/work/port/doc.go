// Package port is where package workers meets the runtime that runs its handlers: what a run puts
// into the context of its handler, and what the runtime reads of a registry and of an error. Package
// workers shows none of it to its users.
package port
