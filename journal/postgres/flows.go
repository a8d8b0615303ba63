package postgres

import (
	"bytes"
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Deploy stores a flow version. The same content again changes nothing; other
// content is store.ErrVersionTaken. The first version of a flow is active.
func (s *Store) Deploy(ctx context.Context, ref journal.FlowRef, canonical []byte) (bool, error) {
	fresh := false
	err := s.call(ctx, "deploy", func(c *conn) error {
		var digest journal.Digest
		var stored []byte
		err := c.transact(ctx,
			step{"flow_lock", [][]byte{pText(ref.Name)}, nil},
			step{"flow_deploy", [][]byte{pText(ref.Name), pText(ref.Version), pDigest(ref.Digest), canonical}, func(row) error {
				fresh = true
				return nil
			}},
			step{"flow_read", [][]byte{pText(ref.Name), pText(ref.Version)}, func(v row) error {
				digest, stored = v.digest(0), v.bytes(1)
				return nil
			}},
		)
		if err == nil && (digest != ref.Digest || !bytes.Equal(stored, canonical)) {
			return fmt.Errorf("postgres: deploy: %w: %s %s: raise the version", store.ErrVersionTaken, ref.Name, ref.Version)
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
			step{"flow_lock", params[:1], nil},
			step{"flow_deactivate", params, nil},
			step{"flow_activate", params, func(row) error { found = true; return nil }},
		)
		if err == nil && !found {
			return s.noFlow(name, version)
		}
		return err
	})
}

func (s *Store) noFlow(name, version string) error {
	return fmt.Errorf("postgres: %w: flow %s, version %s: deploy it", store.ErrNotFound, name, version)
}

// Flows lists the deployed versions.
func (s *Store) Flows(ctx context.Context) ([]store.FlowView, error) {
	var all []store.FlowView
	err := s.query(ctx, "flow_list", func() { all = nil }, func(v row) error {
		all = append(all, store.FlowView{
			Ref:    journal.FlowRef{Name: v.text(0), Version: v.text(1), Digest: v.digest(2)},
			Active: v.bool(3), Deployed: collation.Micros(v.int(4)),
		})
		return nil
	})
	return all, err
}

// Flow returns the canonical definition of one version: store.ErrNotFound.
func (s *Store) Flow(ctx context.Context, name, version string) ([]byte, error) {
	var definition []byte
	err := s.query(ctx, "flow_read", nil, func(v row) error { definition = v.bytes(1); return nil }, pText(name), pText(version))
	if err == nil && definition == nil {
		return nil, s.noFlow(name, version)
	}
	return definition, err
}

// ActiveFlow returns the version for new jobs: store.ErrNotFound.
func (s *Store) ActiveFlow(ctx context.Context, name string) (journal.FlowRef, []byte, error) {
	var ref journal.FlowRef
	var definition []byte
	err := s.query(ctx, "flow_active", nil, func(v row) error {
		ref = journal.FlowRef{Name: v.text(0), Version: v.text(1), Digest: v.digest(2)}
		definition = v.bytes(3)
		return nil
	}, pText(name))
	if err == nil && definition == nil {
		err = s.noFlow(name, "active")
	}
	return ref, definition, err
}

// step is one statement of a transaction that decides nothing in between.
type step struct {
	name   string
	params [][]byte
	visit  func(row) error
}

// transact runs the steps as one transaction in one trip.
func (c *conn) transact(ctx context.Context, steps ...step) error {
	return c.series(ctx, "begin", steps)
}

// snapshot runs the steps on one snapshot, in one trip.
func (c *conn) snapshot(ctx context.Context, steps ...step) error {
	return c.series(ctx, "begin_snapshot", steps)
}

func (c *conn) series(ctx context.Context, begin string, steps []step) error {
	if err := c.require(ctx, begin, "commit", "rollback"); err != nil {
		return err
	}
	b := c.batch()
	for _, s := range steps {
		if err := c.require(ctx, s.name); err != nil {
			return err
		}
	}
	b.queue(begin)
	for _, s := range steps {
		b.queue(s.name, s.params...)
	}
	b.queue("commit")
	r := b.send(ctx)
	r.each(nil)
	for _, s := range steps {
		r.each(s.visit)
	}
	r.each(nil)
	err := r.close()
	if err != nil && !c.idle() {
		abandon(ctx, c)
	}
	return err
}
