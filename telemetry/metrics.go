package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quipu-journal/quipu/observer"
)

// MaxSeries bounds the attribute sets of one metric; all others are counted together in
// the set otel.metric.overflow.
const MaxSeries = 500

// MaxLabel bounds an attribute's value in a metric, in bytes.
const MaxLabel = 64

// labels are the attributes that a metric may have: kinds of things, never jobs, keys or
// addresses.
var labels = map[string]bool{"reason": true, "topic": true, "outcome": true, "class": true, "mode": true}

// counters are the metrics that Count adds to.
var counters = map[string]struct{ unit, help string }{
	observer.MetricTransitions:  {"{message}", "Messages handled."},
	observer.MetricRedelivered:  {"{message}", "Deliveries after the first."},
	observer.MetricStale:        {"{message}", "Messages with a stale verdict."},
	observer.MetricRefused:      {"{message}", "Messages that nobody acts on: not authentic, or no key to check them."},
	observer.MetricUnlicensed:   {"{message}", "Messages acked that have neither a receipt nor a dispatch row."},
	observer.MetricDecidedAgain: {"{batch}", "Batches decided again after a lost test-and-set."},
	observer.MetricDead:         {"{letter}", "Dead letters written, by reason."},
	observer.MetricResent:       {"{message}", "Rows sent again by the sweeper."},
	observer.MetricHandled:      {"{attempt}", "Handler runs, by topic and outcome."},
	observer.MetricEffects:      {"{effect}", "Effects, by class and outcome."},
	observer.MetricVerified:     {"{answer}", "Answers of verifiers, by mode and outcome: done, not_done, unknown; of completed effects confirmed, contradicted, unconfirmed."},
	observer.MetricSignals:      {"{signal}", "Signals, by what became of them: consumed, kept, missed, duplicate."},
	observer.MetricScheduled:    {"{job}", "Jobs due by a schedule, by outcome: started, already, refused."},
	observer.MetricAnother:      {"{database}", "Times that the database was found to be another one than the space's."},
}

// distributions are the metrics that Observe records.
var distributions = map[string]struct {
	unit, help string
	bounds     []float64
}{
	observer.MetricBatch: {"{message}", "Messages per transaction.", []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}},
	observer.MetricCommit: {
		"s", "Load to commit of a batch.",
		[]float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	},
}

// gauges are the metrics whose last value Observe sets.
var gauges = map[string]struct{ unit, help string }{
	observer.MetricOutboxLag: {"s", "Age of the oldest due row."},
	observer.MetricTimerLag:  {"s", "How late a due timer is at most."},
}

// instruments are made once; afterwards the maps are read-only.
type instruments struct {
	counters      map[string]metric.Int64Counter
	distributions map[string]metric.Float64Histogram
	gauges        map[string]metric.Float64Gauge
}

func newInstruments(m metric.Meter) (instruments, error) {
	out := instruments{
		counters:      make(map[string]metric.Int64Counter, len(counters)),
		distributions: make(map[string]metric.Float64Histogram, len(distributions)),
		gauges:        make(map[string]metric.Float64Gauge, len(gauges)),
	}
	var err error
	for name, d := range counters {
		if out.counters[name], err = m.Int64Counter(name, metric.WithUnit(d.unit), metric.WithDescription(d.help)); err != nil {
			return out, err
		}
	}
	for name, d := range distributions {
		out.distributions[name], err = m.Float64Histogram(name, metric.WithUnit(d.unit), metric.WithDescription(d.help),
			metric.WithExplicitBucketBoundaries(d.bounds...))
		if err != nil {
			return out, err
		}
	}
	for name, d := range gauges {
		if out.gauges[name], err = m.Float64Gauge(name, metric.WithUnit(d.unit), metric.WithDescription(d.help)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Count implements observer.Observer. It ignores an unknown metric, and any attribute
// other than reason, topic, outcome, class and mode.
func (t *Telemetry) Count(name string, n int64, pairs ...string) {
	if c, ok := t.instruments.counters[name]; ok {
		c.Add(context.Background(), n, set(pairs))
	}
}

// Observe implements observer.Observer; it ignores the same as Count.
func (t *Telemetry) Observe(name string, value float64, pairs ...string) {
	if d, ok := t.instruments.distributions[name]; ok {
		d.Record(context.Background(), value, set(pairs))
	} else if g, ok := t.instruments.gauges[name]; ok {
		g.Record(context.Background(), value, set(pairs))
	}
}

var emptySet = metric.WithAttributeSet(*attribute.EmptySet())

func set(pairs []string) metric.MeasurementOption {
	if len(pairs) < 2 {
		return emptySet
	}
	out := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if labels[pairs[i]] {
			out = append(out, attribute.String("quipu."+pairs[i], cut(pairs[i+1], MaxLabel)))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(out...))
}
