package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Limits of the page with the metrics, which anybody may ask.
const (
	maxScrapes = 4 // at a time; another one gets 503
	scrapeTime = 10 * time.Second
)

// prometheusPage makes a reader and the page that shows what it reads. The space is a label of
// every metric; nothing else of the process is shown.
func prometheusPage(log *slog.Logger) (sdkmetric.Reader, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo(),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		exporter.WithResourceAsConstantLabels(attribute.NewAllowKeysFilter(keySpace)))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: Prometheus: %w", ErrConfig, err)
	}
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{log}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
		Timeout: scrapeTime,
	})
	return reader, page, nil
}

// scrapeLog logs what fails during a scrape.
type scrapeLog struct{ *slog.Logger }

// Println implements promhttp.Logger.
func (l scrapeLog) Println(v ...any) {
	l.Warn("metrics could not be served whole", "error", fmt.Sprint(v...))
}

// Metrics serves the metrics as Prometheus text. Without Config.Prometheus it answers 404. Their
// labels name flows and topics; no label names a job, a key or an address.
func (t *Telemetry) Metrics() http.Handler {
	if t.page == nil {
		return http.NotFoundHandler()
	}
	return t.page
}
