package quipu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/schedule"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Bounds of the scheduler.
const (
	// maxCatchUp bounds the jobs that one look starts for one flow; the next look continues
	// there.
	maxCatchUp = 1000
	// lookMost and lookLeast bound the pause between two looks. A newly activated flow is seen
	// after lookMost at the latest.
	lookMost  = 5 * time.Second
	lookLeast = 50 * time.Millisecond
)

// scheduler starts the jobs of flows with a schedule. Any number of processes may do so at once
// (T8): each time has one key, so it starts one job, and the schedule's position is moved by
// test-and-set after the starts.
type scheduler struct {
	store interface {
		Schedules(ctx context.Context) ([]store.Schedule, error)
		MarkSchedule(ctx context.Context, name string, before, after collation.Micros) error
	}
	flows    *engine.Flows
	kept     func(key string) string // what the space keeps of a key (S15)
	begin    func(ctx context.Context, starts []store.Start) []store.Started
	observer observer.Observer
	log      *slog.Logger

	clocks map[journal.FlowRef]*clock // of the active versions
}

// clock is the schedule of a flow version; spec is nil where it has none.
type clock struct {
	flow.Schedule
	spec *schedule.Spec
}

// run looks until ctx ends. It tries again after an error.
func (s *scheduler) run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		wait, err := s.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing: // logged once, not at every look
			s.log.Warn("scheduled jobs are not started; they are caught up with later", "error", err)
		case err == nil && failing:
			s.log.Info("scheduled jobs are started again")
		}
		failing = err != nil
		wait = min(max(wait, lookLeast), lookMost)
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(lookLeast)):
		}
	}
	return nil
}

// look starts the jobs that are due by the database's clock (J5) and returns the time until the
// next one is. A failing flow does not hold up the others.
func (s *scheduler) look(ctx context.Context) (time.Duration, error) {
	active, err := s.store.Schedules(ctx)
	if err != nil {
		return lookMost, err
	}
	wait := lookMost
	clocks := make(map[journal.FlowRef]*clock, len(active))
	var faults []error
	for i := range active {
		ref := active[i].Ref
		c, err := s.clock(ctx, ref)
		if err == nil {
			clocks[ref] = c
			if c.spec == nil {
				continue
			}
			var next time.Duration
			if next, err = s.tick(ctx, &active[i], c); err == nil {
				wait = min(wait, next)
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("flow %s version %s: %w", ref.Name, ref.Version, err))
		}
	}
	s.clocks = clocks
	return wait, errors.Join(faults...)
}

// clock returns the schedule of a version; it parses each version once.
func (s *scheduler) clock(ctx context.Context, ref journal.FlowRef) (*clock, error) {
	if c := s.clocks[ref]; c != nil {
		return c, nil
	}
	f, err := s.flows.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	in := f.Schedule()
	if in == nil {
		return &clock{}, nil
	}
	spec, err := schedule.Parse(in.Cron, in.Zone)
	return &clock{*in, spec}, err
}

// tick starts the due jobs of one flow and moves the flow's position behind them.
func (s *scheduler) tick(ctx context.Context, at *store.Schedule, c *clock) (next time.Duration, err error) {
	now := time.UnixMicro(int64(at.Now))
	last := time.UnixMicro(int64(at.Last))
	fire, upTo := c.spec.Missed(last, now, string(c.CatchUp), maxCatchUp)
	if len(fire) > 0 {
		if err := s.start(ctx, at.Ref, c, fire); err != nil {
			return 0, err
		}
	}
	if len(fire) > 0 || position(c.spec, last, now).Before(now) { // or times were passed over
		err := s.store.MarkSchedule(ctx, at.Ref.Name, at.Last, collation.Micros(upTo.UnixMicro()))
		if err != nil && !errors.Is(err, store.ErrLost) { // ErrLost: another process has moved it
			return 0, err
		}
	}
	if upTo.Before(now) {
		return 0, nil // more is due already
	}
	if t := c.spec.Next(now); !t.IsZero() {
		return t.Sub(now), nil
	}
	return lookMost, nil
}

// start begins one job for each time. A job that exists already is no error. An input that the
// flow refuses would be refused each time, so it is logged and skipped.
func (s *scheduler) start(ctx context.Context, ref journal.FlowRef, c *clock, times []time.Time) error {
	f, err := s.flows.Get(ctx, ref)
	if err != nil {
		return err
	}
	starts := make([]store.Start, len(times))
	for i, at := range times {
		key, err := engine.CheckStart(f, schedule.Key(ref.Name, at), c.Input, s.kept, nil)
		if err != nil {
			s.log.Error("a flow refuses what its schedule starts it with", "flow", ref.Name, "version", ref.Version, "times", len(times), "error", err)
			s.observer.Count(observer.MetricScheduled, int64(len(times)), "outcome", "refused")
			return nil
		}
		starts[i] = store.Start{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: c.Input}
	}
	for len(starts) > 0 {
		n := min(len(starts), MaxStarts)
		for _, x := range s.begin(ctx, starts[:n]) {
			outcome := "started"
			if _, again := errors.AsType[*store.AlreadyStartedError](x.Err); again {
				outcome = "already"
			} else if x.Err != nil {
				return x.Err
			}
			s.observer.Count(observer.MetricScheduled, 1, "outcome", outcome)
		}
		starts = starts[n:]
	}
	return nil
}

// position is up to when a schedule has nothing to start: just before the first time after last, or
// now if that is to come. Without a schedule it is now.
func position(spec *schedule.Spec, last, now time.Time) time.Time {
	if spec != nil {
		if first := spec.Next(last); !first.IsZero() && !first.After(now) {
			return first.Add(-time.Microsecond)
		}
	}
	return now
}

// handOver prepares that another version takes over the schedule of a flow: the position, which the
// version before moves only when it starts a job, is moved to where that version has nothing to
// start. So the new one makes up for what was missed, and for no time before it that nobody missed.
func (rt *Runtime) handOver(ctx context.Context, active []store.Schedule, name, version string) error {
	i := slices.IndexFunc(active, func(s store.Schedule) bool { return s.Ref.Name == name })
	if i < 0 || active[i].Ref.Version == version {
		return nil
	}
	at := &active[i]
	c, err := rt.scheduler().clock(ctx, at.Ref)
	if err != nil { // another version is how this is mended
		rt.cfg.Logger.Warn("the schedule of the version before cannot be read; the new one goes on from its last start",
			"flow", name, "version", at.Ref.Version, "error", err)
		return nil
	}
	last := time.UnixMicro(int64(at.Last))
	to := position(c.spec, last, time.UnixMicro(int64(at.Now)))
	if !to.After(last) {
		return nil
	}
	err = rt.store.MarkSchedule(ctx, name, at.Last, collation.Micros(to.UnixMicro()))
	if errors.Is(err, store.ErrLost) { // another process has moved it
		return nil
	}
	return err
}
