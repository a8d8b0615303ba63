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
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

const root = "../../"

var update = flag.Bool("update", false, "write the tables of docs/metrics.md anew")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	require.NoError(t, err)
	return string(text)
}

// instrument is a metric as Prometheus sees it.
type instrument struct {
	observer.Metric
	name   string   // of Prometheus
	labels []string // of its series, without those that Prometheus adds
}

// page is what a worker serves when each metric was measured once, with all its labels.
func page() (string, error) {
	tel, shutdown, err := telemetry.New(context.Background(), telemetry.Config{
		Space: "shop", Prometheus: true, Getenv: func(string) string { return "" },
	})
	if err != nil {
		return "", err
	}
	var asked []observer.Reading
	for _, m := range observer.Metrics() {
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
			asked = append(asked, observer.Reading{Metric: m.Name, Value: 1, Attributes: pairs})
		}
	}
	tel.Ask(func(context.Context) ([]observer.Reading, error) { return asked, nil })
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String(), shutdown(context.Background())
}

var (
	served  = sync.OnceValues(page)
	comment = regexp.MustCompile(`(?m)^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)\n\S+\{(.*)\}`)
	label   = regexp.MustCompile(`(\w+)="`)
)

// instruments are the metrics of the code, in its order.
func instruments(t *testing.T) []instrument {
	t.Helper()
	text, err := served()
	require.NoError(t, err)
	found := map[string][]string{} // by help, which each has of its own
	for _, m := range comment.FindAllStringSubmatch(text, -1) {
		found[m[2]] = m
	}
	all := observer.Metrics()
	require.Len(t, found, len(all), text)
	out := make([]instrument, len(all))
	for i, m := range all {
		at := found[m.Help]
		require.NotNil(t, at, "%s: %s", m.Name, text)
		out[i] = instrument{Metric: m, name: at[1]}
		for _, l := range label.FindAllStringSubmatch(at[4], -1) {
			out[i].labels = append(out[i].labels, l[1])
		}
		want := []string{"quipu_space"}
		for _, l := range m.Labels {
			want = append(want, "quipu_"+l)
		}
		if m.Kind == observer.Distribution {
			want = append(want, "le")
		}
		require.ElementsMatch(t, want, out[i].labels, m.Name)
	}
	return out
}

// series are the instruments by the names of their series.
func series(t *testing.T) map[string]instrument {
	t.Helper()
	all := map[string]instrument{}
	for _, x := range instruments(t) {
		names := []string{x.name}
		if x.Kind == observer.Distribution {
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
	const head = "| Prometheus | OTLP | type | labels | unit | meaning |\n|---|---|---|---|---|---|\n"
	out := map[string]string{"process": head, "now": head, "space": head}
	for _, x := range instruments(t) {
		part, kind := "process", string(x.Kind)
		switch {
		case x.Space:
			part = "space"
		case x.Kind == observer.Gauge, x.Kind == observer.Total:
			part = "now"
		}
		if x.Kind == observer.Total {
			kind = "counter"
		}
		var labels []string
		for _, l := range x.Labels {
			labels = append(labels, "`quipu_"+l+"`")
		}
		unit := strings.Trim(x.Unit, "{}")
		if unit == "s" {
			unit = "seconds"
		}
		out[part] += fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s |\n", x.name, x.Name, kind, strings.Join(labels, ", "), unit, x.Help)
	}
	return out
}

// O4: docs/metrics.md lists the instruments of the code.
func TestO4MetricsPage(t *testing.T) {
	t.Parallel()
	have := read(t, "docs/metrics.md")
	want := have
	for name, table := range tables(t) {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(want, begin)
		require.True(t, found, begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, end)
		want = before + begin + "\n" + table + "\n" + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(root+"docs/metrics.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, have, "go test ./tests/deploy -run Page -update writes it anew")
}
