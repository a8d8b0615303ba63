package deploy_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/telemetry"
)

const root = "../../"

var update = flag.Bool("update", false, "write the tables of docs/metrics.md anew")

// instrument is a metric as Prometheus sees it.
type instrument struct {
	observer.Metric
	name   string // of Prometheus
	labels []string
}

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// export lets a worker's telemetry serve one metric, and reads how it is called.
func export(t *testing.T, m observer.Metric) instrument {
	t.Helper()
	tel, shutdown, err := telemetry.New(t.Context(), telemetry.Config{
		Space: "shop", Prometheus: true, Getenv: func(string) string { return "" },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, shutdown(context.Background())) }()
	var pairs []string
	for _, l := range m.Labels {
		pairs = append(pairs, l, "x")
	}
	switch m.Kind {
	case observer.Counter:
		tel.Count(m.Name, 1, pairs...)
	case observer.Distribution:
		tel.Observe(m.Name, 1, pairs...)
	default:
		tel.Ask(func(context.Context) ([]observer.Reading, error) {
			return []observer.Reading{{Metric: m.Name, Value: 1, Attributes: pairs}}, nil
		})
	}
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	found := typeLine.FindAllStringSubmatch(w.Body.String(), -1)
	require.Len(t, found, 1, "%s: %s", m.Name, w.Body)
	x := instrument{Metric: m, name: found[0][1], labels: []string{"quipu_space"}}
	for _, l := range m.Labels {
		require.Contains(t, w.Body.String(), "quipu_"+l+`="x"`)
		x.labels = append(x.labels, "quipu_"+l)
	}
	if m.Kind == observer.Distribution {
		require.Equal(t, "histogram", found[0][2])
		x.labels = append(x.labels, "le")
	}
	return x
}

// series are the instruments by the names of their series.
func series(t *testing.T) map[string]instrument {
	t.Helper()
	all := map[string]instrument{}
	for _, m := range observer.Metrics() {
		x := export(t, m)
		names := []string{x.name}
		if m.Kind == observer.Distribution {
			names = []string{x.name + "_bucket", x.name + "_sum", x.name + "_count"}
		}
		for _, name := range names {
			require.NotContains(t, all, name)
			all[name] = x
		}
	}
	return all
}

// tables are the parts of docs/metrics.md that the code gives.
func tables(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]*strings.Builder{"process": {}, "now": {}, "space": {}}
	for _, b := range out {
		b.WriteString("| Prometheus | OTLP | type | labels | unit | meaning |\n|---|---|---|---|---|---|\n")
	}
	for _, m := range observer.Metrics() {
		x, part, kind := export(t, m), "process", string(m.Kind)
		switch {
		case m.Space:
			part = "space"
		case m.Kind == observer.Gauge, m.Kind == observer.Total:
			part = "now"
		}
		if m.Kind == observer.Total {
			kind = "counter"
		}
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = "`quipu_" + l + "`"
		}
		unit := strings.Trim(m.Unit, "{}")
		if unit == "s" {
			unit = "seconds"
		}
		fmt.Fprintf(out[part], "| `%s` | `%s` | %s | %s | %s | %s |\n", x.name, m.Name, kind, strings.Join(labels, ", "), unit, m.Help)
	}
	text := map[string]string{}
	for name, b := range out {
		text[name] = b.String()
	}
	return text
}

// O4: docs/metrics.md lists the instruments of the code.
func TestO4MetricsPage(t *testing.T) {
	t.Parallel()
	path := root + "docs/metrics.md"
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(have)
	for name, table := range tables(t) {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		require.True(t, found, begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, end)
		page = before + begin + "\n" + table + "\n" + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	require.Equal(t, page, string(have), "go test ./tests/deploy -run Page -update writes it anew")
}
