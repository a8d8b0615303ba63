// Package saga is an example: a durable function books a trip. It is a Go function that reads
// from top to bottom, waits for days, and undoes its bookings if it cannot go on. insurance.yaml
// is a child that it starts; trips is its worker. README.md says how to try it.
package saga
