package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Deploy implements store.Operator. Most processes deploy what is there already: that locks nothing.
func (s *Store) Deploy(ctx context.Context, d store.Deployment) (store.Deployed, error) {
	taken := false
	version := [][]byte{pText(d.Ref.Name), pText(d.Ref.Version)}
	read := func(v row) (store.Deployed, error) {
		taken = v.digest(0) != d.Ref.Digest || !bytes.Equal(v.bytes(1), d.Canonical)
		return store.Deployed{Active: v.bool(2)}, nil
	}
	out, there, err := readOne(ctx, s, "flow_read", read, version...)
	if err == nil && !there {
		steps := []step{{name: "flow_lock"}}
		if d.Activate {
			steps = append(steps, step{"flow_make_room", append(slices.Clone(version), pBool(false)), nil})
		}
		fresh := false
		content := append(slices.Clone(version), pDigest(d.Ref.Digest), d.Canonical)
		steps = append(steps,
			step{"flow_deploy", content, func(row) error { fresh = true; return nil }},
			step{"flow_read", version, func(v row) (err error) { out, err = read(v); return err }},
		)
		err = s.act(ctx, "deploy", func(c *conn) (add []journal.SpaceEntry, err error) {
			fresh = false
			err = c.run(ctx, steps...)
			if out.Fresh = fresh; fresh {
				add = append(add, journal.SpaceEntry{Kind: journal.SpaceDeployed, Who: d.Who, Facts: map[string]string{
					"flow": d.Ref.Name, "version": d.Ref.Version, "digest": d.Ref.Digest.String(), "active": yes(out.Active),
				}})
			}
			return add, err
		})
	}
	if err == nil && taken {
		err = fmt.Errorf("%w: %s %s: raise the version", store.ErrVersionTaken, d.Ref.Name, d.Ref.Version)
	}
	if err != nil {
		return store.Deployed{}, err
	}
	return out, nil
}

// yes is a fact that is so or not.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// Activate implements store.Operator.
func (s *Store) Activate(ctx context.Context, name, version, who string) error {
	return s.act(ctx, "activate", func(c *conn) ([]journal.SpaceEntry, error) {
		before, found := "", false
		params := [][]byte{pText(name), pText(version)}
		err := c.run(ctx,
			step{name: "flow_lock"},
			step{"flow_active", [][]byte{pText(name)}, func(v row) error { before = v.flow(0).Version; return nil }},
			step{"flow_make_room", append(slices.Clone(params), pBool(true)), nil},
			step{"flow_activate", params, func(row) error { found = true; return nil }},
		)
		switch {
		case err == nil && !found:
			return nil, s.noFlow(name, version)
		case err != nil, before == version:
			return nil, err
		}
		return []journal.SpaceEntry{{Kind: journal.SpaceActivated, Who: who, Facts: map[string]string{
			"flow": name, "version": version, "before": before,
		}}}, nil
	})
}

// noFlow says that a version is not deployed, or, with version empty, that the flow has none.
func (s *Store) noFlow(name, version string) error {
	if version == "" {
		return fmt.Errorf("%w: no version of flow %s in space %s: deploy it", store.ErrNotFound, name, s.cfg.Space)
	}
	return fmt.Errorf("%w: flow %s, version %s in space %s: deploy it, with --inactive if new jobs are to keep the version that they take now", store.ErrNotFound, name, version, s.cfg.Space)
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
