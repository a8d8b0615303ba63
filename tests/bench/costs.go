package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/telemetry"
)

// rounds are how often each variant of costs is measured, one after the other in each round.
const rounds = 3

// costs are what trust and tracing cost jobs of ten steps with 200 callers: the same with MACs and
// without, and with the traces of all jobs sent and without.
func (b *bench) costs(ctx context.Context) error {
	const callers = 200
	jobs := b.enough(callers) / 2
	signed := func(on bool) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			space := b.space()
			err := b.sign(ctx, space, on)
			if err != nil {
				return 0, err
			}
			r, err := b.drive(ctx,
				work{name: "W10", space: space, how: below.Mode{NoLocal: true}, callers: callers, jobs: jobs})
			if err = errors.Join(err, b.drop(ctx, space)); err != nil {
				return 0, err
			}
			return r.perSecond(), nil
		}
	}
	traced := func(source telemetry.Traces) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) { return b.traced(ctx, source, callers, jobs) }
	}
	for _, pair := range []struct {
		name, aim     string
		with, without func(context.Context) (float64, error)
	}{
		{"MACs, all by JetStream", "aim ≥ 0.97 ×", signed(true), signed(false)},
		{"traces from the journal", "", traced(telemetry.TracesJournal), traced(telemetry.TracesOff)},
		{"live traces", "", traced(telemetry.TracesLive), traced(telemetry.TracesOff)},
	} {
		var ratios, rates []float64
		for range rounds {
			with, err := pair.with(ctx)
			if err != nil {
				return err
			}
			without, err := pair.without(ctx)
			if err != nil {
				return err
			}
			ratios, rates = append(ratios, with/without), append(rates, with)
		}
		slices.Sort(ratios)
		slices.Sort(rates)
		b.print(line{
			"W10, 200 callers, " + pair.name, rates[rounds/2], "steps/s",
			fmt.Sprintf("%.2f × without, median of %d rounds (%.2f to %.2f); %s", ratios[rounds/2], rounds, ratios[0], ratios[rounds-1], pair.aim),
		})
	}
	return nil
}

// sign makes a space whose messages carry MACs, or none.
func (b *bench) sign(ctx context.Context, space string, on bool) error {
	rt, err := quipu.Open(ctx, quipu.Config{Postgres: b.dsn, Space: space, Logger: warnings})
	if err != nil {
		return err
	}
	defer rt.Close()
	return rt.Keys().Switch(ctx, on)
}

// traced is the rate of jobs whose traces go to a collector in this process, which drops them. What
// is still to be sent when the jobs have ended does not count.
func (b *bench) traced(ctx context.Context, source telemetry.Traces, callers, jobs int) (float64, error) {
	var received atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Add(n)
	}))
	defer collector.Close()
	tel, shutdown, err := telemetry.New(ctx,
		telemetry.Config{Traces: source, Endpoint: collector.URL, Logger: warnings})
	if err != nil {
		return 0, err
	}
	r, err := b.drive(ctx, work{name: "W10", callers: callers, jobs: jobs, config: func(c *quipu.Config) {
		c.Observer = tel
	}})
	if err = errors.Join(err, shutdown(ctx)); err != nil {
		return 0, err
	}
	if source != telemetry.TracesOff && received.Load() == 0 && jobs >= 1000 { // a few jobs end before the first look
		return 0, fmt.Errorf("traces %s: the collector got nothing", source)
	}
	return r.perSecond(), nil
}
