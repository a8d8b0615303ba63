package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// flowVersions are the deployed versions of one flow.
type flowVersions struct {
	active   string
	last     collation.Micros // the time up to which scheduled starts were made
	versions map[string]*deployed
}

type deployed struct {
	ref       journal.FlowRef
	canonical []byte
	at        collation.Micros
}

// Migrate does nothing: there is no schema.
func (s *Store) Migrate(context.Context) error { return nil }

// Epoch implements store.Engine. It never changes, since nobody restores a store in memory.
func (s *Store) Epoch(context.Context) (int64, error) { return 1, nil }

// Deploy implements store.Operator.
func (s *Store) Deploy(_ context.Context, d store.Deployment) (out store.Deployed, err error) {
	err = s.write("deploy", func(u *undo) error {
		ref := d.Ref
		f := s.flows[ref.Name]
		if f == nil {
			f = &flowVersions{active: ref.Version, last: s.now(), versions: map[string]*deployed{}}
			put(u, s.flows, ref.Name, f)
		}
		old := f.versions[ref.Version]
		switch {
		case old != nil && (old.ref.Digest != ref.Digest || !bytes.Equal(old.canonical, d.Canonical)):
			return fmt.Errorf("memory: deploy %s version %s: %w", ref.Name, ref.Version, store.ErrVersionTaken)
		case old == nil:
			if d.Activate {
				set(u, &f.active, ref.Version)
			}
			put(u, f.versions, ref.Version, &deployed{ref: ref, canonical: slices.Clone(d.Canonical), at: s.now()})
		}
		out = store.Deployed{Fresh: old == nil, Active: f.active == ref.Version}
		return nil
	})
	if err != nil {
		return store.Deployed{}, err
	}
	return out, nil
}

// Activate implements store.Operator.
func (s *Store) Activate(_ context.Context, name, version, _ string) error {
	return s.write("activate", func(u *undo) error {
		if _, err := s.version(name, version); err != nil {
			return err
		}
		set(u, &s.flows[name].active, version)
		return nil
	})
}

func (s *Store) version(name, version string) (*deployed, error) {
	if f := s.flows[name]; f != nil && f.versions[version] != nil {
		return f.versions[version], nil
	}
	return nil, fmt.Errorf("memory: flow %q version %q: %w", name, version, store.ErrNotFound)
}

// Flow implements store.Engine and store.Client.
func (s *Store) Flow(_ context.Context, name, version string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.version(name, version)
	if err != nil {
		return nil, err
	}
	return slices.Clone(d.canonical), nil
}

// ActiveFlow implements store.Client.
func (s *Store) ActiveFlow(_ context.Context, name string) (journal.FlowRef, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flows[name]
	if f == nil {
		return journal.FlowRef{}, nil, fmt.Errorf("memory: flow %q: %w", name, store.ErrNotFound)
	}
	d := f.versions[f.active]
	return d.ref, slices.Clone(d.canonical), nil
}

// Schedules implements store.Client.
func (s *Store) Schedules(context.Context) ([]store.Schedule, error) {
	if err := s.before("schedules"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []store.Schedule
	for _, name := range slices.Sorted(maps.Keys(s.flows)) {
		f := s.flows[name]
		out = append(out, store.Schedule{Ref: f.versions[f.active].ref, Last: f.last, Now: now})
	}
	return out, nil
}

// MarkSchedule implements store.Client.
func (s *Store) MarkSchedule(_ context.Context, name string, before, after collation.Micros) error {
	return s.write("mark schedule", func(u *undo) error {
		f := s.flows[name]
		if f == nil || f.last != before || after < before {
			return lost("the schedule of flow %q is not at %d", name, before)
		}
		set(u, &f.last, after)
		return nil
	})
}

// ExpireDefault implements store.Engine. At first jobs are kept for good.
func (s *Store) ExpireDefault(context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expire, nil
}

// SetExpireDefault implements store.Operator.
func (s *Store) SetExpireDefault(_ context.Context, d time.Duration) error {
	if err := store.CheckExpire(d); err != nil {
		return fmt.Errorf("memory: %w: %w", store.ErrRejected, err)
	}
	return s.write("set expire", func(u *undo) error { set(u, &s.expire, d.Truncate(time.Microsecond)); return nil })
}
