// Package telemetry turns what the runtime tells its observer into
// OpenTelemetry traces and metrics over OTLP (spec 5.4). It is the only package
// that knows OpenTelemetry.
//
//	tel, shutdown, err := telemetry.New(ctx, telemetry.Config{Space: "shop", Version: build})
//	rt, err := quipu.Open(ctx, quipu.Config{…, Observer: tel})
//	…
//	err = shutdown(ctx) // after Run has returned
//
// # One job, one tree
//
// The root of a job's trace is the span of its start. Its traceparent is stored
// with the job, so every later span, in whatever process and after whatever
// restart, is put under it: what engines commit arrives as finished spans with
// all their parts, what a handler does nests in the span of its attempt. Spans
// are handed to the exporter parent first, and spans that a handler opens are
// held back until its attempt has ended: a process that is killed leaves no
// span whose parent was never exported, as far as its root was. A starter that
// is killed within the export delay (OTEL_BSP_SCHEDULE_DELAY, 5 s) takes the
// root with it; the spans of that job still share one trace id.
//
// # What is in a span
//
// Names, addresses, digits, codes; never an input, an output, a header or an
// error's text, all of which may carry a user's data. A failed span has the
// status error and the error's type. [Config.ErrorText] adds the text.
//
// # Where it goes
//
// The standard variables say it: OTEL_EXPORTER_OTLP_ENDPOINT, …_PROTOCOL (grpc
// or http/protobuf, the default), …_HEADERS and their _TRACES_ and _METRICS_
// forms, OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER (otlp or none),
// OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME,
// OTEL_SDK_DISABLED. Without an endpoint a signal is off and costs nothing.
// Metrics go out over OTLP only; there is no Prometheus endpoint.
package telemetry
