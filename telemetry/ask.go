package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Times of a Source: how often somebody collects must not load the database (O4).
const (
	// AskEvery is how long its readings are used again, however often metrics are collected.
	AskEvery = 5 * time.Second
	// askShare bounds the part of its time that a server spends on a slow answer: 1/askShare.
	askShare = 20
	// askTime bounds one question.
	askTime = 4 * time.Second
)

// asking remembers what a Source said last.
type asking struct {
	source observer.Source

	mu       sync.Mutex // held while the source is asked: other collectors wait for its answer
	until    time.Time  // the readings are used until then
	readings []observer.Reading
	failing  bool
	over     bool
}

// Ask implements observer.Observer.
func (t *Telemetry) Ask(source observer.Source) (forget func()) {
	if t.instruments == nil {
		return func() {}
	}
	all := make([]metric.Observable, 0, len(t.instruments.asked))
	for _, x := range t.instruments.asked {
		all = append(all, x.observe)
	}
	a := &asking{source: source}
	registered, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		t.report(o, t.read(ctx, a))
		return nil
	}, all...)
	if err != nil {
		t.logger.Error("gauges cannot be read", "error", err)
		return func() {}
	}
	return func() {
		_ = registered.Unregister()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.over = true
	}
}

// read returns what the source says, or said a short time ago.
func (t *Telemetry) read(ctx context.Context, a *asking) []observer.Reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	if time.Now().Before(a.until) {
		return a.readings
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	readings, err := a.source(ctx)
	if failing := err != nil; failing != a.failing { // logged once per series
		a.failing = failing
		if failing {
			t.logger.Warn("some gauges cannot be read; their metrics are missing", "error", err)
		} else {
			t.logger.Info("all gauges are read again")
		}
	}
	a.readings = readings
	a.until = time.Now().Add(max(AskEvery, askShare*time.Since(begun)))
	return readings
}

// report gives readings to a collector. Several values of a label may have become Other: they are
// one number then, the sum, or of times the longest.
func (t *Telemetry) report(o metric.Observer, readings []observer.Reading) {
	type series struct {
		metric string
		set    attribute.Distinct
	}
	reported := map[series]float64{}
	for _, r := range readings {
		x := t.instruments.asked[r.Metric]
		if x == nil {
			continue
		}
		options, value := x.options(r.Attributes), r.Value
		set := metric.NewObserveConfig(options).Attributes()
		one := series{r.Metric, set.Equivalent()}
		switch before, again := reported[one]; {
		case again && x.unit == "s":
			value = max(value, before)
		case again:
			value += before
		}
		reported[one] = value
		o.ObserveFloat64(x.observe, value, options...)
	}
}
