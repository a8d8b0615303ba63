// Package observer is the small port through which the runtime tells what it
// does. Package telemetry turns the calls into OpenTelemetry spans and
// metrics; Nop drops them. Nothing here is ever read back by the runtime.
package observer
