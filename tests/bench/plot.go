package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quipu-journal/quipu/flow"
)

// plots draws how the throughput goes with the jobs that are stored, and how the times
// go with the load.
func (b *bench) plots(ctx context.Context) error {
	if b.plot == "" {
		return nil
	}
	for _, p := range []struct {
		name string
		draw func(context.Context) (*chart, error)
	}{{"throughput.svg", b.overStored}, {"latency.svg", b.overLoad}} {
		c, err := p.draw(ctx)
		if err != nil {
			return err
		}
		svg, err := c.svg()
		if err != nil {
			return err
		}
		//nolint:gosec // a picture for all
		if err := os.WriteFile(filepath.Join(b.plot, p.name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// earlyW10 is W10 of early handlers.
func earlyW10(callers, jobs int, space string) work {
	return work{
		name: "ten early steps", flows: []*flow.Flow{inLine("e10", "early", 10)}, flow: "e10", steps: 10,
		callers: callers, jobs: jobs, space: space,
	}
}

// overStored is W10's rate with none to a million jobs in the tables, and that of early handlers.
func (b *bench) overStored(ctx context.Context) (_ *chart, err error) {
	f := &filled{bench: b, space: b.space()}
	defer func() { err = errors.Join(err, b.drop(ctx, f.space)) }()
	rate, early := series{name: "not early"}, series{name: "early steps"}
	for fifth := range 6 {
		if err := f.fill(ctx, fifth*b.scaled(200_000)); err != nil {
			return nil, err
		}
		stored := f.jobs
		r, err := f.w10In(ctx, b.scaled(4000))
		if err != nil {
			return nil, err
		}
		rate.points = append(rate.points, point{float64(stored), r.perSecond()})
		e, err := b.drive(ctx, earlyW10(200, b.scaled(4000), f.space))
		if err != nil {
			return nil, err
		}
		f.jobs += b.scaled(4000)
		early.points = append(early.points, point{float64(stored), e.perSecond()})
		b.print(line{fmt.Sprintf("W10, 200 callers, %d jobs stored", stored), r.perSecond(), "steps/s", figure(e.perSecond()) + " of early handlers"})
	}
	return &chart{
		title: "Throughput over stored jobs", sub: "jobs of ten steps, 200 callers, a checkpoint before each point; " + b.machine,
		x: axis{label: "jobs stored"}, y: axis{label: "steps/s"}, series: []series{rate, early},
	}, nil
}

// overLoad is what a job of ten steps takes, with one caller to a thousand.
func (b *bench) overLoad(ctx context.Context) (*chart, error) {
	p50, p99, early := series{name: "p50"}, series{name: "p99"}, series{name: "p50, early"}
	for _, callers := range []int{1, 2, 5, 10, 50, 200, 500, 1000} {
		r, err := b.w10With(ctx, callers)
		if err != nil {
			return nil, err
		}
		p50.points = append(p50.points, point{float64(callers), millis(r.laps.quantile(0.5))})
		p99.points = append(p99.points, point{float64(callers), millis(r.laps.quantile(0.99))})
		if r, err = b.drive(ctx, earlyW10(callers, b.enough(callers), "")); err != nil {
			return nil, err
		}
		b.report(title("ten early steps", callers), r, "")
		early.points = append(early.points, point{float64(callers), millis(r.laps.quantile(0.5))})
	}
	return &chart{
		title: "Latency over load", sub: "jobs of ten steps, Start to the return of Wait; " + b.machine,
		x: axis{label: "callers in closed loops", log: true}, y: axis{label: "ms", log: true}, series: []series{early, p50, p99},
	}, nil
}
