// Package wire is a worker by docs/wire.md alone (T6), with no right on NATS but
// those that it names.
package wire
