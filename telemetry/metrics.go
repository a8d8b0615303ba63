package telemetry

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Limits of what a metric may have, so that no collector is flooded (O4).
const (
	// MaxValues bounds the values of a label in one process. A value beyond them is Other.
	MaxValues = 100
	// MaxSeries bounds the attribute sets of one metric; all others are counted together in
	// the set otel.metric.overflow.
	MaxSeries = 2000
	// MaxLabel bounds a label's value, in bytes.
	MaxLabel = 64
	// Other stands for all values of a label beyond MaxValues.
	Other = "other"
)

// instruments are made once; afterwards only their series grow.
type instruments struct {
	counters      map[string]*instrument[metric.AddOption]
	distributions map[string]*instrument[metric.RecordOption]
	asked         map[string]*instrument[metric.ObserveOption]
	values        values
}

// instrument is one metric with the options of its series, which are made once: a measurement
// of a known series allocates nothing here.
type instrument[O any] struct {
	labels  []string
	unit    string
	values  *values
	counter metric.Int64Counter
	record  metric.Float64Histogram
	observe metric.Float64Observable

	mu     sync.RWMutex
	series map[[observer.MaxLabels]string][]O
}

func newInstruments(m metric.Meter) (*instruments, error) {
	out := &instruments{
		counters:      map[string]*instrument[metric.AddOption]{},
		distributions: map[string]*instrument[metric.RecordOption]{},
		asked:         map[string]*instrument[metric.ObserveOption]{},
		values:        values{known: map[string]map[string]bool{}},
	}
	for _, d := range observer.Metrics() {
		if err := out.add(m, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (i *instruments) add(m metric.Meter, d observer.Metric) (err error) {
	unit, help := metric.WithUnit(d.Unit), metric.WithDescription(d.Help)
	switch d.Kind {
	case observer.Counter:
		x := newInstrument[metric.AddOption](d, &i.values)
		if x.counter, err = m.Int64Counter(d.Name, unit, help); err == nil && len(d.Labels) == 0 {
			x.counter.Add(context.Background(), 0) // it is there before the first one: an alert compares it with that
		}
		i.counters[d.Name] = x
	case observer.Distribution:
		x := newInstrument[metric.RecordOption](d, &i.values)
		x.record, err = m.Float64Histogram(d.Name, unit, help, metric.WithExplicitBucketBoundaries(d.Bounds...))
		i.distributions[d.Name] = x
	case observer.Gauge:
		x := newInstrument[metric.ObserveOption](d, &i.values)
		x.observe, err = m.Float64ObservableGauge(d.Name, unit, help)
		i.asked[d.Name] = x
	case observer.Total:
		x := newInstrument[metric.ObserveOption](d, &i.values)
		x.observe, err = m.Float64ObservableCounter(d.Name, unit, help)
		i.asked[d.Name] = x
	}
	return err
}

func newInstrument[O any](d observer.Metric, v *values) *instrument[O] {
	return &instrument[O]{labels: d.Labels, unit: d.Unit, values: v, series: map[[observer.MaxLabels]string][]O{}}
}

// options are those of the series that the attributes name. Attributes that the metric does not
// take are dropped.
func (i *instrument[O]) options(pairs []string) []O {
	var key [observer.MaxLabels]string
	for n := 0; n+1 < len(pairs); n += 2 {
		if at := slices.Index(i.labels, pairs[n]); at >= 0 {
			key[at] = pairs[n+1]
		}
	}
	i.mu.RLock()
	known, ok := i.series[key]
	i.mu.RUnlock()
	if ok {
		return known
	}
	own, all := []attribute.KeyValue(nil), true
	for at, label := range i.labels {
		value, known := i.values.bound(label, key[at])
		all = all && known
		if value != "" {
			own = append(own, attribute.String("quipu."+label, value))
		}
	}
	made := []O{metric.WithAttributeSet(attribute.NewSet(own...)).(O)}
	if all { // otherwise there may be any number of them
		i.mu.Lock()
		i.series[key] = made
		i.mu.Unlock()
	}
	return made
}

// values are the values that each label has had, up to MaxValues of each.
type values struct {
	mu    sync.Mutex
	known map[string]map[string]bool // by label
}

// bound returns the value to use for a label. known says that it is one of its MaxValues.
func (v *values) bound(label, value string) (bounded string, known bool) {
	if value == "" {
		return "", true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[label] == nil {
		v.known[label] = map[string]bool{}
	}
	short := cut(value, MaxLabel)
	if !v.known[label][short] {
		if len(v.known[label]) >= MaxValues {
			return Other, false
		}
		v.known[label][short] = true
	}
	return short, short == value
}

// Count implements observer.Observer.
func (t *Telemetry) Count(name string, n int64, pairs ...string) {
	if t.instruments == nil {
		return
	}
	if c := t.instruments.counters[name]; c != nil {
		c.counter.Add(context.Background(), n, c.options(pairs)...)
	}
}

// Observe implements observer.Observer.
func (t *Telemetry) Observe(name string, value float64, pairs ...string) {
	if t.instruments == nil {
		return
	}
	if d := t.instruments.distributions[name]; d != nil {
		d.record.Record(context.Background(), value, d.options(pairs)...)
	}
}
