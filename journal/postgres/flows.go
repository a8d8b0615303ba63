package postgres

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Deploy implements store.Operator.
func (s *Store) Deploy(ctx context.Context, ref journal.FlowRef, canonical []byte, activate bool) (bool, error) {
	fresh := false
	err := s.call(ctx, "deploy", func(c *conn) error {
		var digest journal.Digest
		var stored []byte
		steps := []step{{name: "flow_lock"}}
		if activate {
			steps = append(steps, step{"flow_make_room", [][]byte{pText(ref.Name), pText(ref.Version), pBool(false)}, nil})
		}
		err := c.transact(ctx, append(steps,
			step{"flow_deploy", [][]byte{pText(ref.Name), pText(ref.Version), pDigest(ref.Digest), canonical}, func(row) error {
				fresh = true
				return nil
			}},
			step{"flow_read", [][]byte{pText(ref.Name), pText(ref.Version)}, func(v row) error {
				digest, stored = v.digest(0), v.bytes(1)
				return nil
			}},
		)...)
		if err == nil && (digest != ref.Digest || !bytes.Equal(stored, canonical)) {
			return fmt.Errorf("%w: %s %s: raise the version", store.ErrVersionTaken, ref.Name, ref.Version)
		}
		return err
	})
	return fresh && err == nil, err
}

// Activate sets the version for new jobs: store.ErrNotFound.
func (s *Store) Activate(ctx context.Context, name, version string) error {
	return s.call(ctx, "activate", func(c *conn) error {
		found := false
		params := [][]byte{pText(name), pText(version)}
		err := c.transact(ctx,
			step{name: "flow_lock"},
			step{"flow_make_room", append(params, pBool(true)), nil},
			step{"flow_activate", params, func(row) error { found = true; return nil }},
		)
		if err == nil && !found {
			return s.noFlow(name, version)
		}
		return err
	})
}

// noFlow says that a version is not deployed, or, with version empty, that the flow has none.
func (s *Store) noFlow(name, version string) error {
	if version == "" {
		return fmt.Errorf("%w: no version of flow %s in space %s: deploy it", store.ErrNotFound, name, s.cfg.Space)
	}
	return fmt.Errorf("%w: flow %s, version %s in space %s: deploy it", store.ErrNotFound, name, version, s.cfg.Space)
}

// Flows lists the deployed versions.
func (s *Store) Flows(ctx context.Context) ([]store.FlowView, error) {
	return readAll(ctx, s, "flow_list", func(v row) (store.FlowView, error) {
		return store.FlowView{Ref: v.flow(0), Active: v.bool(3), Deployed: collation.Micros(v.int(4))}, nil
	})
}

// Flow returns the canonical definition of one version: store.ErrNotFound.
func (s *Store) Flow(ctx context.Context, name, version string) ([]byte, error) {
	definition, found, err := readOne(ctx, s, "flow_read", func(v row) ([]byte, error) {
		return v.bytes(1), nil
	}, pText(name), pText(version))
	if err == nil && !found {
		return nil, s.noFlow(name, version)
	}
	return definition, err
}

// ActiveFlow returns the version for new jobs: store.ErrNotFound.
func (s *Store) ActiveFlow(ctx context.Context, name string) (journal.FlowRef, []byte, error) {
	var ref journal.FlowRef
	definition, found, err := readOne(ctx, s, "flow_active", func(v row) ([]byte, error) {
		ref = v.flow(0)
		return v.bytes(3), nil
	}, pText(name))
	if err == nil && !found {
		err = s.noFlow(name, "")
	}
	return ref, definition, err
}

// Schedules lists the active flow versions, with the time up to which their scheduled starts were
// made.
func (s *Store) Schedules(ctx context.Context) ([]store.Schedule, error) {
	return readAll(ctx, s, "flow_schedules", func(v row) (store.Schedule, error) {
		return store.Schedule{Ref: v.flow(0), Last: collation.Micros(v.int(3)), Now: collation.Micros(v.int(4))}, nil
	})
}

// MarkSchedule moves that time forward by test-and-set: store.ErrLost.
func (s *Store) MarkSchedule(ctx context.Context, name string, before, after collation.Micros) error {
	_, err := s.change(ctx, "flow_mark", pText(name), pInt(int64(before)), pInt(int64(after)))
	return err
}

// SetExpireDefault implements store.Operator. It needs the rights of the owner.
func (s *Store) SetExpireDefault(ctx context.Context, d time.Duration) error {
	if err := store.CheckExpire(d); err != nil {
		return rejected("set expire", err)
	}
	after := "never"
	if d > 0 {
		after = d.String()
	}
	return s.setting(ctx, "expire_default_set", pInt(d.Microseconds()), journal.SpaceExpire, "after", after)
}
