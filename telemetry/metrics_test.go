package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// metrics makes a Telemetry that serves metrics as text, and to a reader.
func metrics(t *testing.T, log *slog.Logger) (*telemetry.Telemetry, *metric.ManualReader) {
	t.Helper()
	reader := metric.NewManualReader()
	tel, shutdown, err := telemetry.New(t.Context(), telemetry.Config{
		Space: "shop", Name: "host-7", Reader: reader, Prometheus: true, Getenv: env(), Logger: log,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shutdown(context.Background())) })
	return tel, reader
}

// fill measures each metric once, with each of its labels, and an attribute that none takes.
func fill(tel *telemetry.Telemetry) (forget func()) {
	var asked []observer.Reading
	for _, m := range observer.Metrics() {
		pairs := []string{"job", "of high cardinality", "odd"}
		for _, l := range m.Labels {
			pairs = append([]string{l, "some"}, pairs...)
		}
		switch m.Kind {
		case observer.Counter:
			tel.Count(m.Name, 2, pairs...)
		case observer.Distribution:
			tel.Observe(m.Name, 2, pairs...)
		default:
			asked = append(asked, observer.Reading{Metric: m.Name, Value: 2, Attributes: pairs})
		}
	}
	return tel.Ask(func(context.Context) ([]observer.Reading, error) { return asked, nil })
}

// scrape reads the page of metrics.
func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	return w.Body.String()
}

// O4: each metric of the port is an instrument with its labels and no other, for every
// collector the same.
func TestO4MetricsForEveryCollector(t *testing.T) {
	t.Parallel()
	tel, reader := metrics(t, nil)
	fill(tel)
	tel.Count("unknown", 1)
	tel.Observe("unknown", 1)
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	require.Len(t, data.ScopeMetrics, 1)
	got := map[string]metricdata.Metrics{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	page := scrape(t, tel)
	require.Len(t, got, len(observer.Metrics()))
	require.Equal(t, len(got), strings.Count(page, "# TYPE "), page)
	for _, want := range observer.Metrics() {
		m := got[want.Name]
		require.Equal(t, want.Help, m.Description)
		require.Equal(t, want.Unit, m.Unit)
		labels, text := []attribute.KeyValue{}, []string{}
		for _, l := range want.Labels {
			labels, text = append(labels, attribute.String("quipu."+l, "some")), append(text, "quipu_"+l+`="some"`)
		}
		set := attribute.NewSet(labels...)
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			require.Equal(t, set, d.DataPoints[0].Attributes)
			require.EqualValues(t, 2, d.DataPoints[0].Value)
		case metricdata.Histogram[float64]:
			require.Equal(t, set, d.DataPoints[0].Attributes)
			require.Equal(t, want.Bounds, d.DataPoints[0].Bounds)
		case metricdata.Gauge[float64]:
			require.Equal(t, set, d.DataPoints[0].Attributes)
		case metricdata.Sum[float64]:
			require.Equal(t, set, d.DataPoints[0].Attributes)
			require.True(t, d.IsMonotonic)
		default:
			t.Errorf("%s is a %T", want.Name, d)
		}
		for _, l := range text {
			require.Regexp(t, strings.ReplaceAll(want.Name, ".", "_")+`[a-z_]*\{.*`+regexp.QuoteMeta(l), page)
		}
	}
	for _, hidden := range []string{"host-7", "cardinality", "target_info", "otel_scope"} {
		require.NotContains(t, page, hidden, "the page gives nothing else away")
	}
	for line := range strings.SplitSeq(page, "\n") {
		if line != "" && line[0] != '#' {
			require.Contains(t, line, `quipu_space="shop"`)
		}
	}
}

// O4: the values of a label are bounded, whichever metric they come with.
func TestO4LabelsAreBounded(t *testing.T) {
	t.Parallel()
	tel, _ := metrics(t, nil)
	for n := range 3 * telemetry.MaxValues {
		tel.Count(observer.MetricHandled, 1, "topic", fmt.Sprint("t", n), "outcome", "success")
		tel.Observe(observer.MetricHandling, 1, "topic", fmt.Sprint("t", n))
	}
	tel.Ask(func(context.Context) (all []observer.Reading, _ error) {
		for n := range 3 * telemetry.MaxValues {
			all = append(all,
				observer.Reading{Metric: observer.MetricQueued, Value: 1, Attributes: []string{"topic", fmt.Sprint("t", n)}},
				observer.Reading{
					Metric: observer.MetricOldest, Value: float64(n), Attributes: []string{"topic", fmt.Sprint("t", n)},
				})
		}
		return all, nil
	})
	tel.Count(observer.MetricBegun, 1, "flow", strings.Repeat("ü", telemetry.MaxLabel))
	page := scrape(t, tel)
	require.Equal(t, telemetry.MaxValues+1, strings.Count(page, "\nquipu_handler_attempts_total{"))
	require.Contains(t, page, `quipu_handler_attempts_total{quipu_outcome="success",quipu_space="shop",quipu_topic="other"} 200`)
	require.Contains(t, page, `quipu_handler_seconds_count{quipu_space="shop",quipu_topic="other"} 200`)
	require.Contains(t, page, `quipu_topic_queued{quipu_space="shop",quipu_topic="other"} 200`, "together")
	require.Contains(t, page, `quipu_topic_oldest_seconds{quipu_space="shop",quipu_topic="other"} 299`, "the longest")
	require.Contains(t, page, `quipu_flow="`+strings.Repeat("ü", telemetry.MaxLabel/2)+`"`)
}

// O4: a source is asked once for all that collect within some seconds. What it could not read
// is missing; nothing of it is kept. It is not asked any more when it is forgotten.
func TestO4SourcesAreAskedSeldom(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	tel, reader := metrics(t, slog.New(slog.NewTextHandler(&log, nil)))
	var asked atomic.Int64
	forget := tel.Ask(func(ctx context.Context) ([]observer.Reading, error) {
		asked.Add(1)
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		return []observer.Reading{{Metric: observer.MetricWaiting, Value: 3}, {Metric: "unknown"}}, errors.New("no database")
	})
	for range 3 {
		require.Contains(t, scrape(t, tel), `quipu_waiting{quipu_space="shop"} 3`)
		require.NoError(t, reader.Collect(t.Context(), &metricdata.ResourceMetrics{}))
	}
	require.EqualValues(t, 1, asked.Load())
	require.Equal(t, 1, strings.Count(log.String(), "no database"))
	forget()
	require.NotContains(t, scrape(t, tel), "quipu_waiting")
	require.EqualValues(t, 1, asked.Load())
}

// O4: a step costs no allocation here, and a handler's run one for its attributes.
//
//nolint:paralleltest // AllocsPerRun counts those of all goroutines
func TestO4MeasuringAllocatesNothing(t *testing.T) {
	tel, _ := metrics(t, nil)
	var o observer.Observer = tel
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Count(observer.MetricTransitions, 1) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Observe(observer.MetricCommit, .01) }))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		o.Count(observer.MetricHandled, 1, "topic", "work", "outcome", "success")
	}), 1.)
}
