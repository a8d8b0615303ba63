package effect

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// This file is for the effects that package durable records itself: versions,
// compensations, the branch that was first.

// OwnCall is the call of an effect that package durable makes itself. The effect is
// recorded under prefix and name; name is as for Do. own tells effects of the same name
// apart in keys; if it is "", the position does.
func OwnCall(prefix, name, own string, class effects.Class) (*Call, error) {
	c := newCall(name)
	c.name, c.own, c.placed, c.class = prefix+name, own, own == "", class
	return c, c.err
}

// At sets the call's place, nil for none, and the position that is recorded with it, ""
// for none.
func (c *Call) At(p Place, position string) { c.place, c.position = p, position }

// IsOnce reports whether the call may be repeated, see Once.
func (c *Call) IsOnce() bool { return c.once }

// Carry returns the recorded outcome of an own call, or brings it about with fn, once in
// this run.
func (s *Session) Carry(ctx context.Context, c *Call, fn func() ([]byte, error)) ([]byte, error) {
	return s.carry(ctx, c, func(context.Context, any) ([]byte, error) { return fn() })
}

// Register records the start of an own call under its n-th key, without an outcome. What it
// returns is not done if the call has run in an earlier generation.
func (s *Session) Register(ctx context.Context, c *Call, n int) (store.EffectRow, error) {
	row, _, err := s.start(ctx, s.Effect(c, n))
	if err != nil {
		return row, s.trouble(c, "record it", err)
	}
	s.adopt(&row)
	s.count(c, "registered")
	return row, nil
}

// Record records the result of an own call.
func (s *Session) Record(ctx context.Context, c *Call, e journal.Effect, result []byte) error {
	e.Result = result
	if _, err := s.record(ctx, c, e, nil); err != nil {
		return err
	}
	return s.Flush()
}

// Ran notes that an own call ran: its span, and a failure in the metrics.
func (s *Session) Ran(c *Call, key journal.Digest, began time.Time, err error) {
	s.span(c, key, began, err)
	if err != nil {
		s.count(c, "failed")
	}
}

// Rows are the recorded effects of a request.
type Rows struct {
	List   []store.EffectRow
	ByKey  map[journal.Digest]store.EffectRow
	labels map[string]string // by explicit key
}

// NewRows indexes the rows that the store lists.
func NewRows(list []store.EffectRow) Rows {
	r := Rows{List: list, ByKey: make(map[journal.Digest]store.EffectRow, len(list)), labels: make(map[string]string)}
	for _, row := range list {
		r.ByKey[row.Key] = row
		if key, keyed := explicitOf(row.Name); keyed {
			r.labels[key] = row.Name
		}
	}
	return r
}

// BeginPass gives the run of a durable function its record before the function runs
// from its top, and forgets the calls and the verdict of the pass before. With undone
// set, no verifier is asked.
func (s *Session) BeginPass(recorded Rows, undone bool) {
	s.loadMu.Lock()
	s.rows, s.loaded = recorded, true
	s.loadMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.verdict, s.read, s.rank, s.undone = nil, nil, nil, 0, undone
}

// GoOn gives the session the record and the calls of the session of the turn before, where
// the function goes on at its wait. That session makes no more calls.
func (s *Session) GoOn(from *Session) {
	from.mu.Lock()
	calls := from.calls
	from.mu.Unlock()
	s.BeginPass(from.rows, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = calls
}
