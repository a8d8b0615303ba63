package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// AppendSpace adds an entry to the space's own chain (S7), with the facts of its kind, the name
// and build of this process, the session's user and the database's time. It needs the rights of
// an engine, an operator or the owner.
func (s *Store) AppendSpace(ctx context.Context, kind journal.SpaceKind, facts map[string]string) error {
	return s.appendSpace(ctx, func([]*journal.SpaceEntry) []journal.SpaceEntry {
		return []journal.SpaceEntry{{Kind: kind, Facts: facts}}
	})
}

// Accept records in the space's chain which weaknesses were accepted (S7): each whose value is
// not the one that was recorded for it last.
func (s *Store) Accept(ctx context.Context, accepted []store.Weakness) error {
	fresh := func(have []*journal.SpaceEntry) (add []journal.SpaceEntry) {
		last := make(map[string]string)
		for _, e := range have {
			if e.Kind == journal.SpaceAccepted {
				last[e.Facts["check"]] = e.Facts["value"]
			}
		}
		for _, w := range accepted {
			if value, known := last[w.Check]; !known || value != w.Value {
				add = append(add, journal.SpaceEntry{Kind: journal.SpaceAccepted, Facts: map[string]string{"check": w.Check, "value": w.Value}})
			}
		}
		return add
	}
	chain, err := s.SpaceChain(ctx)
	if err != nil {
		return err
	}
	have, err := decodeSpace(chain.Entries)
	if err != nil || len(fresh(have)) == 0 {
		return err
	}
	if err := s.appendSpace(ctx, fresh); forbidden(err) {
		return fmt.Errorf("%w: this login may not record in the space's chain what it accepts: let an engine or the owner of the space accept it first", err)
	} else if err != nil {
		return err
	}
	return nil
}

// SpaceEntries reads the space's own chain (S7), as operators see it.
func (s *Store) SpaceEntries(ctx context.Context) ([]*journal.SpaceEntry, error) {
	chain, err := s.SpaceChain(ctx)
	if err != nil {
		return nil, err
	}
	return decodeSpace(chain.Entries)
}

// SpaceChain reads the space's own chain as it is stored, with its head, from one snapshot (S7).
func (s *Store) SpaceChain(ctx context.Context) (*replay.SpaceChain, error) {
	chain := &replay.SpaceChain{}
	err := s.look(ctx, "space chain", func(c *conn) error {
		*chain = replay.SpaceChain{}
		return c.snapshot(ctx, step{"space_head", nil, func(v row) error {
			chain.Name, chain.ID, chain.Head = v.text(0), v.guid(1), journal.Head{Seq: v.int(2), Hash: v.digest(3)}
			return nil
		}}, step{"space_entries", nil, readSpace(chain)})
	})
	return chain, err
}

// appendSpace adds the entries that add returns for those that are there. It holds the lock of the
// space's row, so that the chain has one end. A repetition finds what an attempt of unknown outcome
// has written (J4).
func (s *Store) appendSpace(ctx context.Context, add func(have []*journal.SpaceEntry) []journal.SpaceEntry) error {
	var tried []journal.Record
	return s.call(ctx, "space entry", func(c *conn) error {
		if err := c.query(ctx, "begin", nil); err != nil {
			return err
		}
		err := func() error {
			records, login, now, err := s.lockSpace(ctx, c)
			if err != nil || len(tried) > 0 && slices.ContainsFunc(records.Entries, func(r journal.Record) bool { return r.Hash == tried[0].Hash }) {
				return err
			}
			have, err := decodeSpace(records.Entries)
			if err != nil {
				return err
			}
			tried, err = s.linkSpace(records, add(have), login, now)
			if err != nil || len(tried) == 0 {
				return err
			}
			var steps []step
			for _, r := range tried {
				steps = append(steps, step{"space_insert", [][]byte{pInt(r.Seq), r.Body, pDigest(r.Hash)}, nil})
			}
			last := tried[len(tried)-1]
			steps = append(steps, step{"space_move", [][]byte{pInt(last.Seq), pDigest(last.Hash)}, nil}, step{"commit", nil, nil})
			if err := c.require(ctx, "space_insert", "space_move", "commit"); err != nil {
				return err
			}
			return c.run(ctx, steps...)
		}()
		if !c.pg.IsClosed() && !c.idle() {
			abandon(ctx, c)
		}
		return err
	})
}

// lockSpace locks the space's row and reads its chain.
func (s *Store) lockSpace(ctx context.Context, c *conn) (chain *replay.SpaceChain, login string, now int64, err error) {
	chain = &replay.SpaceChain{}
	err = c.query(ctx, "space_lock", func(v row) error {
		chain.Name, chain.ID, chain.Head = v.text(0), v.guid(1), journal.Head{Seq: v.int(2), Hash: v.digest(3)}
		login, now = v.text(4), v.int(5)
		return nil
	})
	if err == nil {
		err = c.query(ctx, "space_entries", readSpace(chain))
	}
	return chain, login, now, err
}

// linkSpace chains new entries to the head.
func (s *Store) linkSpace(chain *replay.SpaceChain, add []journal.SpaceEntry, login string, now int64) ([]journal.Record, error) {
	head := chain.Head
	if head.Seq == 0 {
		head.Hash = journal.SpaceGenesis(chain.Name, chain.ID)
	}
	var records []journal.Record
	for i := range add {
		e := &add[i]
		e.At, e.Who, e.Login, e.Build = now, s.cfg.Writer, login, s.cfg.Build
		body, err := journal.EncodeSpace(e)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		head = journal.Head{Seq: head.Seq + 1, Hash: journal.Next(head.Hash, body)}
		records = append(records, journal.Record{Seq: head.Seq, Body: body, Hash: head.Hash})
	}
	return records, nil
}

// readSpace collects the entries of the chain.
func readSpace(chain *replay.SpaceChain) func(row) error {
	chain.Entries = nil
	return func(v row) error {
		chain.Entries = append(chain.Entries, journal.Record{Seq: v.int(0), Body: v.bytes(1), Hash: v.digest(2)})
		return nil
	}
}

func decodeSpace(records []journal.Record) ([]*journal.SpaceEntry, error) {
	all := make([]*journal.SpaceEntry, len(records))
	for i, r := range records {
		e, err := journal.DecodeSpace(r.Body)
		if err != nil {
			return nil, fmt.Errorf("postgres: entry %d of the space's chain: %w: %w", r.Seq, store.ErrRejected, err)
		}
		e.Seq, all[i] = r.Seq, e
	}
	return all, nil
}
