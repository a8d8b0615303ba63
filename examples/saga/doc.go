// Package saga is an example: a trip is booked by a durable function, a Go function
// that is read from top to bottom, waits for days, and takes back what it did when
// it cannot go on. insurance.yaml is a child that it starts; trips is its worker.
// README.md says how to try it.
package saga
