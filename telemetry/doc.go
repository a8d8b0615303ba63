// Package telemetry turns the runtime's calls of its observer into OpenTelemetry traces
// and metrics over OTLP (spec 5.4). Only this package knows OpenTelemetry.
//
//	tel, shutdown, err := telemetry.New(ctx, telemetry.Config{Space: "shop", Version: build})
//	rt, err := quipu.Open(ctx, quipu.Config{…, Observer: tel})
//	…
//	err = shutdown(ctx) // after Run has returned
//
// # One job, one tree
//
// The root of a job's trace is the span of its start. Its traceparent is stored with the
// job, so every later span, in any process and after any restart, is placed under it.
// Engines report their commits as finished spans with all their parts; the spans of a
// handler nest in the span of its attempt. Spans reach the exporter parent first, and
// spans that a handler opens are held back until its attempt has ended. So a killed
// process leaves no span without an exported parent below the root. If a starter is
// killed within the export delay (OTEL_BSP_SCHEDULE_DELAY, 5 s) the root itself is lost;
// the spans of that job still share one trace id.
//
// # What is in a span
//
// Names, addresses, digits and codes; never an input, an output, a header or an error's
// text, all of which may carry a user's data. A failed span has the status error and the
// error's type. [Config.ErrorText] adds the text.
//
// # Where it goes
//
// The standard variables decide: OTEL_EXPORTER_OTLP_ENDPOINT, …_PROTOCOL (grpc or
// http/protobuf, the default), …_HEADERS and their _TRACES_ and _METRICS_ forms,
// OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER (otlp or none), OTEL_TRACES_SAMPLER,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, OTEL_SDK_DISABLED. Without an endpoint a
// signal is off and costs nothing. With Config.Prometheus [Telemetry.Metrics] serves the same
// metrics as Prometheus text, whether or not they go out over OTLP, too (O4). docs/metrics.md
// lists them.
package telemetry
