// Package observer is the small port through which the runtime reports what it does.
// Package telemetry turns the calls into OpenTelemetry spans and metrics; Nop drops them.
// The runtime never reads anything back.
package observer
