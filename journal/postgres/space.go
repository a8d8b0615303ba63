package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

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
				add = append(add,
					journal.SpaceEntry{Kind: journal.SpaceAccepted, Facts: map[string]string{"check": w.Check, "value": w.Value}})
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
	err = s.act(ctx, "accept a weakness", func(c *conn) ([]journal.SpaceEntry, error) {
		now := &replay.SpaceChain{}
		if err := c.query(ctx, "space_entries", readSpace(now)); err != nil {
			return nil, err
		}
		have, err := decodeSpace(now.Entries)
		return fresh(have), err
	})
	if forbidden(err) {
		return fmt.Errorf("%w: this login may not record in the space's chain what it accepts: let an engine or the owner of the space accept it first", err)
	}
	return err
}

// SpaceEntries reads the space's own chain (S7), as operators see it.
func (s *Store) SpaceEntries(ctx context.Context) ([]*journal.SpaceEntry, error) {
	chain, err := s.SpaceChain(ctx)
	if err != nil {
		return nil, err
	}
	return decodeSpace(chain.Entries)
}

// spaceRow is what the row of the space says.
type spaceRow struct {
	epoch, dropped int64
	expire         time.Duration
	private        bool
}

func (s *Store) space(ctx context.Context) (x spaceRow, err error) {
	x, _, err = readOne(ctx, s, "space", func(v row) (spaceRow, error) {
		return spaceRow{v.int(4), v.int(6), time.Duration(v.int(5)) * time.Microsecond, v.bool(7)}, nil
	})
	return x, err
}

// Epoch returns the space's epoch (T4).
func (s *Store) Epoch(ctx context.Context) (int64, error) {
	x, err := s.space(ctx)
	return x.epoch, err
}

// ExpireDefault implements store.Engine.
func (s *Store) ExpireDefault(ctx context.Context) (time.Duration, error) {
	x, err := s.space(ctx)
	return x.expire, err
}

// DroppedLetters implements store.Lists.
func (s *Store) DroppedLetters(ctx context.Context) (int64, error) {
	x, err := s.space(ctx)
	return x.dropped, err
}

// PrivateKeys says whether the space keeps digests of the keys of jobs and signals (S15).
func (s *Store) PrivateKeys(ctx context.Context) (bool, error) {
	x, err := s.space(ctx)
	return x.private, err
}

// SpaceChain reads the space's own chain as it is stored, with its head, from one snapshot (S7).
func (s *Store) SpaceChain(ctx context.Context) (*replay.SpaceChain, error) {
	chain := &replay.SpaceChain{}
	err := s.look(ctx, "space chain", func(c *conn) error {
		*chain = replay.SpaceChain{}
		return c.snapshot(ctx, step{"space", nil, func(v row) error {
			chain.Name, chain.ID, chain.Head = v.text(0), v.guid(1), journal.Head{Seq: v.int(2), Hash: v.digest(3)}
			return nil
		}}, step{"space_entries", nil, readSpace(chain)})
	})
	return chain, err
}

// act does something to the space, and adds the entries that it returns to the space's own chain,
// in one transaction (S7): each with the build of this process, its name if the entry names nobody else,
// the session's user and the database's time. Without entries nothing was to be done, and nothing is
// committed. do may be called again; then nothing that it did before holds. It needs the rights of the
// owner, of an engine or of an operator, and those that do needs.
func (s *Store) act(ctx context.Context, op string, do func(c *conn) ([]journal.SpaceEntry, error)) error {
	var tried *journal.Record
	return s.call(ctx, op, func(c *conn) error { return s.actOn(ctx, c, &tried, do) })
}

// actOn is act on a connection. It holds the lock of the space's row, so that the chain has one end.
// tried is the last entry of an attempt of unknown outcome: a repetition that finds it does nothing
// (J4).
func (s *Store) actOn(
	ctx context.Context, c *conn, tried **journal.Record, do func(c *conn) ([]journal.SpaceEntry, error),
) error {
	err := c.query(ctx, "begin", nil)
	if err == nil {
		err = s.actIn(ctx, c, tried, do)
	}
	if !c.pg.IsClosed() && !c.idle() {
		abandon(ctx, c)
	}
	return err
}

// actIn acts in an open transaction, and commits it if there is something to commit.
func (s *Store) actIn(
	ctx context.Context, c *conn, tried **journal.Record, do func(c *conn) ([]journal.SpaceEntry, error),
) error {
	var chain replay.SpaceChain
	var login string
	var now int64
	err := c.query(ctx, "space_lock", func(v row) error {
		chain.Name, chain.ID, chain.Head = v.text(0), v.guid(1), journal.Head{Seq: v.int(2), Hash: v.digest(3)}
		login, now = v.text(4), v.int(5)
		return nil
	})
	if last := *tried; err == nil && last != nil {
		var done bool
		if done, err = c.did(ctx, "space_has", pInt(last.Seq), pDigest(last.Hash)); done {
			return err
		}
	}
	if err != nil {
		return err
	}
	add, err := do(c)
	if err != nil {
		return err
	}
	records, err := s.linkSpace(&chain, add, login, now)
	if err != nil || len(records) == 0 {
		return err
	}
	var steps []step
	for _, r := range records {
		steps = append(steps, step{"space_insert", [][]byte{pInt(r.Seq), r.Body, pDigest(r.Hash)}, nil})
	}
	last := records[len(records)-1]
	*tried = &last
	return c.run(ctx, append(steps, step{"space_move", [][]byte{pInt(last.Seq), pDigest(last.Hash)}, nil}, step{name: "commit"})...)
}

// one is the entry of an act that did something.
func one(did bool, kind journal.SpaceKind, facts map[string]string) []journal.SpaceEntry {
	if !did {
		return nil
	}
	return []journal.SpaceEntry{{Kind: kind, Facts: facts}}
}

// setting changes a setting of the space by one statement, which returns a row if it was another
// one, and says so in the space's chain.
func (s *Store) setting(
	ctx context.Context, statement string, param []byte, kind journal.SpaceKind, fact, value string,
) error {
	return s.act(ctx, statement, func(c *conn) ([]journal.SpaceEntry, error) {
		did, err := c.did(ctx, statement, param)
		return one(did, kind, map[string]string{fact: value}), err
	})
}

// linkSpace chains new entries to the head.
func (s *Store) linkSpace(
	chain *replay.SpaceChain, add []journal.SpaceEntry, login string, now int64,
) ([]journal.Record, error) {
	head := chain.Head
	if head.Seq == 0 {
		head.Hash = journal.SpaceGenesis(chain.Name, chain.ID)
	}
	var records []journal.Record
	for i := range add {
		e := &add[i]
		e.At, e.Who, e.Login, e.Build = now, cmp.Or(e.Who, s.cfg.Writer), login, s.cfg.Build
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
