package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
)

// brief is a flow of one step whose jobs expire at once.
func brief() *flow.Flow {
	return built(flow.New("brief").Version("1").Expire(flow.MinExpire).Trigger("start").
		Worker("step", "noop", flow.Input(order)).Transition("start", "step").Build())
}

// shutAll closes the partitions that have jobs, as if their time was over.
const shutAll = `UPDATE %[1]s.partitions SET opened = CASE WHEN opened > 1 THEN opened - 120000000 ELSE 1 END WHERE opened IS NOT NULL`

// retention sets jobs of ten steps while retention removes others beside the same without
// it, in turn, and each as often the first of the two. Every round finds a backlog of jobs
// that have expired, and partitions to drop once they have all.
func (b *bench) retention(ctx context.Context) (err error) {
	f := &filled{bench: b, space: b.space()}
	defer func() { err = errors.Join(err, b.drop(ctx, f.space)) }()
	var without, with, faster []float64
	for n := range 2 * b.scaled(4) {
		retains := n%4 == 1 || n%4 == 2
		r, removed, err := f.retaining(ctx, retains)
		switch {
		case err != nil:
			return err
		case retains:
			with = append(with, r.perSecond())
			faster = append(faster, removed/(float64(r.jobs)/r.took.Seconds()))
		default:
			without = append(without, r.perSecond())
		}
	}
	b.print(line{
		"W10, 200 callers, retention running ÷ not", median(with) / median(without), "×",
		fmt.Sprintf("%s beside %s steps/s; aim ≥ 0.85", figure(median(with)), figure(median(without))),
	})
	b.print(line{"retention: jobs removed ÷ jobs that end meanwhile", median(faster), "×", "aim > 1"})
	return nil
}

// retaining measures jobs of ten steps beside a backlog of expired jobs, and how many of
// that are removed in a second.
func (f *filled) retaining(ctx context.Context, retains bool) (r *result, removed float64, err error) {
	roles := []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}
	if retains {
		roles = append(roles, quipu.RoleRetention)
	}
	only := func(roles ...quipu.Role) func(*quipu.Config) { return func(c *quipu.Config) { c.Roles = roles } }
	fill := work{
		name: "fill", flows: []*flow.Flow{brief()}, flow: "brief", steps: 1, callers: 1000, jobs: f.scaled(15_000), space: f.space,
		uncounted: true,
		config:    only(quipu.RoleEngine, quipu.RoleWorkers),
	}
	if _, err := f.drive(ctx, fill); err != nil {
		return nil, 0, err
	}
	if err := sql(ctx, f.dsn, fmt.Sprintf(shutAll, schema(f.space))); err != nil {
		return nil, 0, err
	}
	time.Sleep(2 * flow.MinExpire) // the last of them expire
	if err := f.checkpoint(ctx); err != nil {
		return nil, 0, err
	}
	var before, after int64
	expired := "SELECT count(*) FROM " + schema(f.space) + ".jobs WHERE state = 'expired'"
	r, err = f.drive(ctx, work{
		name: "W10", callers: 200, jobs: f.scaled(4000), space: f.space, config: only(roles...),
		prepare: func(ctx context.Context, rt *quipu.Runtime) error {
			return errors.Join(below.Of(rt).Extend(ctx), below.Of(rt).Extend(ctx), sql(ctx, f.dsn, expired, &before))
		},
	})
	if err != nil {
		return nil, 0, err
	}
	err = sql(ctx, f.dsn, expired, &after)
	return r, float64(after-before) / r.took.Seconds(), err
}
