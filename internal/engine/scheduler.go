package engine

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
	// scheduleLookMost and scheduleLookLeast bound the pause between two looks. A newly activated flow is seen
	// after scheduleLookMost at the latest.
	scheduleLookMost  = 5 * time.Second
	scheduleLookLeast = 50 * time.Millisecond
)

// Scheduler starts the jobs of flows with a schedule. Any number of processes may do so at once
// (T8): each time has one key, so it starts one job, and the schedule's position is moved by
// test-and-set after the starts. All exported fields are required.
type Scheduler struct {
	Store interface {
		Schedules(ctx context.Context) ([]store.Schedule, error)
		MarkSchedule(ctx context.Context, name string, before, after collation.Micros) error
	}
	Flows    *Flows
	Kept     func(key string) string // what the space keeps of a key (S15)
	Begin    func(ctx context.Context, starts []store.Start) []store.Started
	Observer observer.Observer
	Logger   *slog.Logger

	schedules map[journal.FlowRef]*scheduleOf // of the active versions
}

// scheduleOf is the schedule of a flow version; spec is nil where it has none.
type scheduleOf struct {
	flow.Schedule
	spec *schedule.Spec
}

// Run looks until ctx ends. It tries again after an error.
func (s *Scheduler) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		wait, err := s.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing: // logged once, not at every look
			s.Logger.Warn("scheduled jobs are not started; they are caught up with later", "error", err)
		case err == nil && failing:
			s.Logger.Info("scheduled jobs are started again")
		}
		failing = err != nil
		wait = min(max(wait, scheduleLookLeast), scheduleLookMost)
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(scheduleLookLeast)):
		}
	}
	return nil
}

// look starts the jobs that are due by the database's clock (J5) and returns the time until the
// next one is. A failing flow does not hold up the others.
func (s *Scheduler) look(ctx context.Context) (time.Duration, error) {
	active, err := s.Store.Schedules(ctx)
	if err != nil {
		return scheduleLookMost, err
	}
	wait := scheduleLookMost
	schedules := make(map[journal.FlowRef]*scheduleOf, len(active))
	var faults []error
	for i := range active {
		ref := active[i].Ref
		c, err := s.scheduleOf(ctx, ref)
		if err == nil {
			schedules[ref] = c
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
	s.schedules = schedules
	return wait, errors.Join(faults...)
}

// scheduleOf returns the schedule of a version; it parses each version once.
func (s *Scheduler) scheduleOf(ctx context.Context, ref journal.FlowRef) (*scheduleOf, error) {
	if c := s.schedules[ref]; c != nil {
		return c, nil
	}
	f, err := s.Flows.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	in := f.Schedule()
	if in == nil {
		return &scheduleOf{}, nil
	}
	spec, err := schedule.Parse(in.Cron, in.Zone)
	return &scheduleOf{*in, spec}, err
}

// tick starts the due jobs of one flow and moves the flow's position behind them.
func (s *Scheduler) tick(ctx context.Context, at *store.Schedule, c *scheduleOf) (next time.Duration, err error) {
	now := time.UnixMicro(int64(at.Now))
	last := time.UnixMicro(int64(at.Last))
	fire, upTo := c.spec.Missed(last, now, string(c.CatchUp), maxCatchUp)
	if len(fire) > 0 {
		if err := s.start(ctx, at.Ref, c, fire); err != nil {
			return 0, err
		}
	}
	if len(fire) > 0 || position(c.spec, last, now).Before(now) { // or times were passed over
		err := s.Store.MarkSchedule(ctx, at.Ref.Name, at.Last, collation.Micros(upTo.UnixMicro()))
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
	return scheduleLookMost, nil
}

// start begins one job for each time. A job that exists already is no error. An input that the
// flow refuses would be refused each time, so it is logged and skipped.
func (s *Scheduler) start(ctx context.Context, ref journal.FlowRef, c *scheduleOf, times []time.Time) error {
	f, err := s.Flows.Get(ctx, ref)
	if err != nil {
		return err
	}
	starts := make([]store.Start, len(times))
	for i, at := range times {
		key, err := CheckStart(f, schedule.Key(ref.Name, at), c.Input, s.Kept, nil)
		if err != nil {
			s.Logger.Error("a flow refuses what its schedule starts it with", "flow", ref.Name, "version", ref.Version, "times", len(times), "error", err)
			s.Observer.Count(observer.MetricScheduled, int64(len(times)), "outcome", "refused")
			return nil
		}
		starts[i] = store.Start{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: c.Input}
	}
	for len(starts) > 0 {
		n := min(len(starts), MaxStarts)
		for _, x := range s.Begin(ctx, starts[:n]) {
			outcome := "started"
			if _, again := errors.AsType[*store.AlreadyStartedError](x.Err); again {
				outcome = "already"
			} else if x.Err != nil {
				return x.Err
			}
			s.Observer.Count(observer.MetricScheduled, 1, "outcome", outcome)
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

// HandOver prepares that another version takes over the schedule of a flow: the position, which the
// version before moves only when it starts a job, is moved to where that version has nothing to
// start. So the new one makes up for what was missed, and for no time before it that nobody missed.
func (s *Scheduler) HandOver(ctx context.Context, active []store.Schedule, name, version string) error {
	i := slices.IndexFunc(active, func(of store.Schedule) bool { return of.Ref.Name == name })
	if i < 0 || active[i].Ref.Version == version {
		return nil
	}
	at := &active[i]
	c, err := s.scheduleOf(ctx, at.Ref)
	if err != nil { // another version is how this is mended
		s.Logger.Warn("the schedule of the version before cannot be read; the new one goes on from its last start",
			"flow", name, "version", at.Ref.Version, "error", err)
		return nil
	}
	last := time.UnixMicro(int64(at.Last))
	to := position(c.spec, last, time.UnixMicro(int64(at.Now)))
	if !to.After(last) {
		return nil
	}
	err = s.Store.MarkSchedule(ctx, name, at.Last, collation.Micros(to.UnixMicro()))
	if errors.Is(err, store.ErrLost) { // another process has moved it
		return nil
	}
	return err
}
