package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// DefaultService is the service.name of a Config that names none.
const DefaultService = "quipu"

// ErrConfig is wrapped by errors about a Config or the OTEL_ variables.
var ErrConfig = errors.New("telemetry configuration")

// Traces says where the spans of jobs come from.
type Traces string

// The sources of spans. The tree of a job comes from its journal when the job has ended (O2).
const (
	TracesJournal Traces = "from-journal"
	TracesLive    Traces = "live" // besides, when each message was committed and published, as it happens
	TracesOff     Traces = "off"
)

// Config configures a Telemetry. A zero field means the default that its comment gives
// last.
type Config struct {
	Service string // service.name, unless OTEL_SERVICE_NAME says otherwise; DefaultService
	Version string // service.version; left out
	Space   string // quipu.space; left out
	Name    string // service.instance.id of this process; left out

	// ErrorText puts the text of errors into spans. It is off by default, because the
	// text may carry users' data.
	ErrorText bool

	// Traces says where spans come from; TracesJournal.
	Traces Traces
	// Endpoint is the URL of a collector that takes spans by OTLP over HTTP, such as
	// http://localhost:4318, in place of what the variables say.
	Endpoint string
	// Exporter replaces the OTLP exporter for spans. Telemetry's shutdown shuts it down.
	Exporter sdktrace.SpanExporter
	// Reader replaces the OTLP exporter for metrics; shut down as above.
	Reader metric.Reader
	// Prometheus has Telemetry.Metrics serve the same metrics as text (O4).
	Prometheus bool
	// Getenv reads the OTEL_ variables that choose exporters; os.Getenv. The exporters
	// read their own variables themselves.
	Getenv func(string) string
	// Logger gets the errors of SetGlobal's error handler; slog.Default.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Traces == "" {
		c.Traces = TracesJournal
	}
	if c.Service == "" {
		c.Service = DefaultService
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// The protocols of OTLP, as OTEL_EXPORTER_OTLP_PROTOCOL spells them.
const (
	protocolOff  = ""
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// protocol chooses the exporter of a signal, "TRACES" or "METRICS", from the standard
// variables. Without an endpoint it is off, unless OTEL_*_EXPORTER asks for it; then the
// exporter uses its own default endpoint.
func (c Config) protocol(signal string) (string, error) {
	const disabled = "OTEL_SDK_DISABLED"
	if strings.EqualFold(c.Getenv(disabled), "true") {
		return protocolOff, nil
	}
	if err := c.check(variable{disabled, false, checkBool}); err != nil {
		return "", err
	}
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch v := c.Getenv(exporter); v {
	case "none":
		return protocolOff, nil
	case "otlp":
	case "":
		if _, endpoint := c.signal(signal, "ENDPOINT"); endpoint == "" {
			return protocolOff, nil
		}
	default:
		return "", fmt.Errorf("%w: %s=%.40q: use otlp or none", ErrConfig, exporter, v)
	}
	name, protocol := c.signal(signal, "PROTOCOL")
	switch protocol {
	case "":
		protocol = protocolHTTP
	case protocolHTTP, protocolGRPC:
	default:
		return "", fmt.Errorf("%w: %s=%.40q: use %s or %s", ErrConfig, name, protocol, protocolGRPC, protocolHTTP)
	}
	return protocol, c.checkExporter(signal, protocol)
}

// signal reads an OTLP variable: the one of the signal, else the common one.
func (c Config) signal(signal, of string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_" + signal + "_" + of
	if value = c.Getenv(name); value == "" {
		name = "OTEL_EXPORTER_OTLP_" + of
		value = c.Getenv(name)
	}
	return name, value
}

// exporter is the exporter for spans; nil when tracing is off.
func (c Config) exporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch c.Traces {
	case TracesJournal, TracesLive:
	case TracesOff:
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: Config.Traces is %.40q: use %s, %s or %s", ErrConfig, c.Traces, TracesJournal, TracesLive, TracesOff)
	}
	if c.Exporter != nil {
		return inTurn(c.Exporter), nil
	}
	protocol, err := protocolHTTP, error(nil)
	var options []otlptracehttp.Option
	if c.Endpoint != "" {
		options, err = at(c.Endpoint)
	} else {
		protocol, err = c.protocol("TRACES")
	}
	if err != nil || protocol == protocolOff {
		return nil, err
	}
	var exporter sdktrace.SpanExporter
	if protocol == protocolGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx, options...)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: OTLP traces over %s: %w", ErrConfig, protocol, err)
	}
	return inTurn(exporter), nil
}

// at is the option for the traces of a collector. As with the variable, a URL without a path gets
// the standard one.
func at(endpoint string) ([]otlptracehttp.Option, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%w: %.200q is no URL of a collector: use one such as http://localhost:4318", ErrConfig, endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(u.String())}, nil
}

// serial gives an exporter one call at a time, as its contract wants: trees do not go through the
// batches of other spans.
type serial struct {
	turn chan struct{} // has room for one
	next sdktrace.SpanExporter
}

func inTurn(next sdktrace.SpanExporter) *serial {
	return &serial{make(chan struct{}, 1), next}
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *serial) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	return s.next.ExportSpans(ctx, spans)
}

// Shutdown implements sdktrace.SpanExporter.
func (s *serial) Shutdown(ctx context.Context) error { return s.next.Shutdown(ctx) }

// sampler reads OTEL_TRACES_SAMPLER and its argument.
func (c Config) sampler() (sdktrace.Sampler, error) {
	const name = "OTEL_TRACES_SAMPLER"
	by := c.Getenv(name)
	by, parent := strings.CutPrefix(by, "parentbased_")
	var s sdktrace.Sampler
	switch by {
	case "":
		s, parent = sdktrace.AlwaysSample(), true
	case "always_on":
		s = sdktrace.AlwaysSample()
	case "always_off":
		s = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := 1.0, error(nil)
		if arg := c.Getenv(name + "_ARG"); arg != "" {
			ratio, err = strconv.ParseFloat(arg, 64)
		}
		if err != nil || !(ratio >= 0 && ratio <= 1) { // nor NaN
			return nil, fmt.Errorf("%w: %s_ARG=%.40q: use a number from 0 to 1", ErrConfig, name, c.Getenv(name+"_ARG"))
		}
		s = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("%w: %s=%.40q: use always_on, always_off or traceidratio, each also after parentbased_", ErrConfig, name, c.Getenv(name))
	}
	if parent {
		s = sdktrace.ParentBased(s)
	}
	return s, nil
}

// reader is the reader for metrics; nil when metrics are off.
func (c Config) reader(ctx context.Context) (metric.Reader, error) {
	if c.Reader != nil {
		return c.Reader, nil
	}
	protocol, err := c.protocol("METRICS")
	if err != nil || protocol == protocolOff {
		return nil, err
	}
	var exporter metric.Exporter
	if protocol == protocolGRPC {
		exporter, err = otlpmetricgrpc.New(ctx)
	} else {
		exporter, err = otlpmetrichttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: OTLP metrics over %s: %w", ErrConfig, protocol, err)
	}
	return metric.NewPeriodicReader(exporter), nil
}

// resource describes this process. The standard variables win over Config.
func (c Config) resource(ctx context.Context) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{attribute.String("service.name", c.Service)}
	for _, a := range []attribute.KeyValue{
		attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Name),
		attribute.String(keySpace, c.Space),
	} {
		if a.Value.AsString() != "" {
			attributes = append(attributes, a)
		}
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("%w: resource attributes: %w", ErrConfig, err)
	}
	return r, nil // a partial one lacks attributes that could not be detected, such as the host's name
}
