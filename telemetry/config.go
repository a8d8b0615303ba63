package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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

	// SpanProcessor replaces the OTLP exporter for spans. Telemetry's shutdown shuts it
	// down.
	SpanProcessor sdktrace.SpanProcessor
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
	if strings.EqualFold(c.Getenv("OTEL_SDK_DISABLED"), "true") {
		return protocolOff, nil
	}
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch v := c.Getenv(exporter); v {
	case "none":
		return protocolOff, nil
	case "otlp":
	case "":
		if c.signal(signal, "ENDPOINT") == "" {
			return protocolOff, nil
		}
	default:
		return "", fmt.Errorf("%w: %s=%.40q: use otlp or none", ErrConfig, exporter, v)
	}
	switch v := c.signal(signal, "PROTOCOL"); v {
	case "", protocolHTTP:
		return protocolHTTP, nil
	case protocolGRPC:
		return protocolGRPC, nil
	default:
		return "", fmt.Errorf("%w: OTEL_EXPORTER_OTLP_PROTOCOL=%.40q: use %s or %s", ErrConfig, v, protocolGRPC, protocolHTTP)
	}
}

// signal reads an OTLP variable: the one of the signal, else the common one.
func (c Config) signal(signal, name string) string {
	if v := c.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_" + name); v != "" {
		return v
	}
	return c.Getenv("OTEL_EXPORTER_OTLP_" + name)
}

// spans is the processor for spans; nil when tracing is off.
func (c Config) spans(ctx context.Context) (sdktrace.SpanProcessor, error) {
	if c.SpanProcessor != nil {
		return c.SpanProcessor, nil
	}
	protocol, err := c.protocol("TRACES")
	if err != nil || protocol == protocolOff {
		return nil, err
	}
	var exporter sdktrace.SpanExporter
	if protocol == protocolGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: OTLP traces over %s: %w", ErrConfig, protocol, err)
	}
	return sdktrace.NewBatchSpanProcessor(exporter), nil
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
