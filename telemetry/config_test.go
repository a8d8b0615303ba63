package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// Without an endpoint, or when switched off, nothing is measured or exported, there is no page, and the
// caller's trace is passed on unchanged.
func TestOffUnlessAsked(t *testing.T) {
	t.Parallel()
	for _, getenv := range []func(string) string{
		env(),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_SDK_DISABLED", "true"),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none"),
	} {
		tel, shutdown, err := telemetry.New(t.Context(), telemetry.Config{Getenv: getenv})
		require.NoError(t, err)
		require.Empty(t, tel.Trace(t.Context()))
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
		stored := tel.Trace(trace.ContextWithRemoteSpanContext(t.Context(), remote))
		require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-00", stored)
		require.Equal(t, stored, tel.Under(observer.Message{Traceparent: stored}, 1))
		require.False(t, tel.Traces())
		require.False(t, tel.Sampled(journal.JobID{}, caller))
		require.NoError(t, tel.Trees(t.Context(), sample("")))
		ctx, done := tel.Attempt(t.Context(), caller, observer.Subject{})
		require.Equal(t, t.Context(), ctx)
		done(nil, nil)
		tel.Told(observer.Message{}, observer.Span{Name: observer.SpanCommit})
		fill(tel)()
		page := httptest.NewRecorder()
		tel.Metrics().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		require.Equal(t, http.StatusNotFound, page.Code)
		_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), "x")
		require.False(t, span.IsRecording())
		require.NoError(t, shutdown(t.Context()))
	}
}

func TestFaultySettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, getenv := range []func(string) string{
		env("OTEL_TRACES_EXPORTER", "zipkin"),
		env("OTEL_METRICS_EXPORTER", "prometheus"),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
		env("OTEL_TRACES_SAMPLER", "jaeger_remote"),
		env("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "half"),
		env("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "NaN"),
		env("OTEL_SDK_DISABLED", "yes"),
	} {
		_, _, err := telemetry.New(t.Context(), telemetry.Config{Getenv: getenv})
		require.ErrorIs(t, err, telemetry.ErrConfig)
		require.ErrorContains(t, err, "use ")
	}
	_, _, err := telemetry.New(t.Context(), telemetry.Config{Getenv: env(), Traces: "sometimes"})
	require.ErrorIs(t, err, telemetry.ErrConfig)
}

// What the exporters and the SDK would replace by a default, and tell nobody, is refused with its
// name. A value that may hold a secret is not shown.
func TestFaultySettingsOfExportersAreRefused(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(pem, nil, 0o600))
	for _, c := range [][2]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://s3cret:s3cret@h:port"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://h"},
		{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "authorization:s3cret"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=b,api key=s3cret"},
		{"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=s3cret%"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "-1"},
		{"OTEL_EXPORTER_OTLP_INSECURE", "yes"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", pem},
		{"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", pem + ".none"},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", pem},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "sometimes"},
		{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "drop"},
		{"OTEL_RESOURCE_ATTRIBUTES", "team"},
		{"OTEL_BSP_SCHEDULE_DELAY", "5s"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "0"},
		{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "few"},
		{"OTEL_METRIC_EXPORT_INTERVAL", "1m"},
		{"OTEL_METRICS_EXEMPLAR_FILTER", "traced"},
	} {
		getenv := env("OTEL_TRACES_EXPORTER", "otlp", "OTEL_METRICS_EXPORTER", "otlp", c[0], c[1])
		_, _, err := telemetry.New(t.Context(), telemetry.Config{Getenv: getenv})
		require.ErrorIs(t, err, telemetry.ErrConfig, c)
		require.ErrorContains(t, err, c[0])
		require.ErrorContains(t, err, "use ")
		require.NotContains(t, err.Error(), "s3cret")
		_, _, err = telemetry.New(t.Context(), telemetry.Config{Getenv: env(
			"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", c[0], c[1], "OTEL_SDK_DISABLED", "True")})
		require.NoError(t, err, "nobody reads it")
	}
	for _, getenv := range []func(string) string{
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:/run/collector", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
		env("OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_HEADERS", "a=b%2Cc, d = e=f", "OTEL_EXPORTER_OTLP_TIMEOUT", " 100 ",
			"OTEL_EXPORTER_OTLP_INSECURE", "TRUE", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
			"OTEL_RESOURCE_ATTRIBUTES", "team=shop,service.name="),
	} {
		_, shutdown, err := telemetry.New(t.Context(), telemetry.Config{Getenv: getenv})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_ = shutdown(ctx) // nobody is there
		cancel()
	}
}

// The exporters take their endpoint from the standard variables: traces and
// metrics arrive over HTTP. Not parallel: the variables are the process's.
func TestExportsOverHTTP(t *testing.T) {
	got := make(chan string, 16)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.URL.Path
		w.WriteHeader(http.StatusOK)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tel, shutdown, err := telemetry.New(t.Context(), telemetry.Config{Space: "shop"})
	require.NoError(t, err)
	require.NoError(t, tel.Trees(t.Context(), sample("")))
	tel.Count(observer.MetricTransitions, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, shutdown(ctx))
	http.DefaultClient.CloseIdleConnections()
	require.ElementsMatch(t, []string{"/v1/traces", "/v1/metrics"}, []string{<-got, <-got})
}

// A missing collector is no error of New, over either protocol.
func TestCollectorAwayIsNoError(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		_, shutdown, err := telemetry.New(t.Context(), telemetry.Config{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_ = shutdown(ctx) // the last export of metrics may fail; it only has to end
		cancel()
	}
}

func TestResourceNamesTheProcess(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.version=9")
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{Space: "shop", Version: "1", Name: "host/1"})
	_, span := tel.TracerProvider().Tracer("shop").Start(t.Context(), "own")
	span.End()
	flush(t, tel)
	set := out.GetSpans()[0].Resource.Set()
	for key, want := range map[attribute.Key]string{
		"service.name": telemetry.DefaultService, "service.version": "9", "service.instance.id": "host/1",
		"quipu.space": "shop", "deployment.environment.name": "test",
	} {
		got, _ := set.Value(key)
		require.Equal(t, want, got.AsString(), key)
	}
}
