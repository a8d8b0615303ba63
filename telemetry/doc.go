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
// The spans of a job come from its journal when it has ended (package trace, O2), so they
// do not depend on what a killed process had sent. Their ids follow from the job and its
// messages. So a handler's own spans, in any process, hang in the attempt that the tree will
// have. With TracesLive the commits and publishes of each message are spans, too, as they
// happen. The spans of a tree are the same bytes from whatever process they come; their
// resource is service.name "quipu" and quipu.space, and names no process.
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
// signal is off and costs nothing. A variable of a signal that is on, and has a value that cannot be
// used, is an error of [New]: the exporters alone would go on with their default. With
// Config.Prometheus [Telemetry.Metrics] serves the same metrics as Prometheus text, whether or not
// they go out over OTLP, too (O4). docs/metrics.md lists them.
package telemetry
