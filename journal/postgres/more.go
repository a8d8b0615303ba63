package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// further is what only some decisions ask for (J2).
type further struct {
	effects []rowKey // requests: do they have an unfinished effect?
	record  []rowKey // requests: all their effects
	named   []named  // rows, each with the job that asks for it
	waits   []rowKey
	latest  []place // with empty addresses
	keys    []askedKey
	closes  []journal.JobID
	past    past
	all     []journal.JobID // jobs: everything that a close cancels (C15)
}

type named struct {
	asks journal.JobID
	row  rowKey
}

type askedKey struct {
	asks journal.JobID
	key  string
}

// More loads what decisions still need into the states of the open transaction (J2). It does not
// replace what a state holds already, since plans of this batch may have changed it.
func (c *committer) More(ctx context.Context, needs map[journal.JobID]*collation.Need) error {
	if !c.open {
		return errNoTransaction
	}
	w := &wanted{}
	var boxes []*mailbox
	for job, need := range needs {
		if need.Further > 0 {
			box := c.mail.of[job]
			box.ask = need.Further
			boxes = append(boxes, box)
			continue
		}
		st := c.states[job]
		if st == nil {
			return fmt.Errorf("postgres: more: job %s was not loaded", job)
		}
		w.ask(job, st, need.Instances, need.Results)
		want(&st.Receipts, &w.receipts, need.Receipts, func(g journal.GUID) rowKey { return rowKey{job, g} })
		w.askFurther(job, st, need)
	}
	steps := c.reads(w)
	if len(boxes) > 0 {
		steps = append(steps, c.mail.look(boxes...))
	}
	if len(steps) == 0 {
		return nil
	}
	err := c.conn.run(ctx, steps...)
	if err == nil {
		err = c.payloads(ctx)
	}
	if err != nil {
		_ = c.Rollback(ctx)
		return classify("more", err)
	}
	for _, job := range w.all {
		c.states[job].AllRows = true
	}
	return nil
}

// askFurther adds what the state has not been asked for yet. A nil member of the state marks what
// was asked for.
func (f *further) askFurther(job journal.JobID, st *collation.State, need *collation.Need) {
	for _, request := range need.Effects {
		f.effects = append(f.effects, rowKey{job, request})
	}
	row := func(g journal.GUID) rowKey { return rowKey{job, g} }
	want(&st.Record, &f.record, need.Record, row)
	for _, k := range need.Rows {
		want(&st.Rows, &f.named, []journal.GUID{k.GUID}, func(g journal.GUID) named {
			return named{job, rowKey{k.Job, g}}
		})
	}
	want(&st.Waits, &f.waits, need.Waits, row)
	want(&st.Latest, &f.latest, need.Latest, func(activity string) place {
		return place{job, collation.InstanceKey{Activity: activity}}
	})
	want(&st.Keys, &f.keys, need.Keys, func(key string) askedKey { return askedKey{job, key} })
	f.past.ask(job, st, need)
	if need.Close && st.Close == nil {
		f.closes = append(f.closes, job)
	}
	if need.AllRows && !st.AllRows {
		f.all = append(f.all, job)
	}
}

// readsFurther returns the statements for f.
func (c *committer) readsFurther(f *further) []step {
	steps := slices.Concat(
		asked("load_unfinished", f.effects, putKey, func(k rowKey, v row) error {
			c.states[k.job].Unfinished[k.guid] = v.bool(1)
			return nil
		}, c.span.ends()...),
		asked("load_effects", f.record, putKey, func(k rowKey, v row) error {
			x, err := readEffect(v[1:])
			c.states[k.job].Record[k.guid] = append(c.states[k.job].Record[k.guid], x)
			return err
		}),
		c.readsPast(&f.past),
		asked("load_named_rows", f.named, func(c *columns, n named) { putKey(c, n.row) }, func(n named, v row) (err error) {
			c.states[n.asks].Rows[n.row.guid], err = readRow(v[1:])
			return err
		}),
		asked("load_waits", f.waits, putKey, func(k rowKey, v row) error {
			c.states[k.job].Waits[k.guid] = readWait(v[1:])
			return nil
		}),
		asked("load_latest", f.latest, putActivity, func(p place, v row) error {
			r, err := c.readResult(p, v, 1)
			c.states[p.job].Latest[p.key.Activity] = r
			return err
		}),
		asked("load_keys", f.keys, func(c *columns, k askedKey) { c.text(k.key) }, func(k askedKey, v row) error {
			c.states[k.asks].Keys[k.key] = v.job(1)
			return nil
		}),
		asked("load_closes", f.closes, func(c *columns, job journal.JobID) { c.uuid(job) }, func(job journal.JobID, v row) error {
			if v.null(1) {
				return nil
			}
			e, err := c.s.sealed(job, v.bytes(1))
			if err == nil {
				c.states[job].Close = e.Close
			}
			return err
		}),
	)
	if len(f.all) > 0 {
		steps = append(steps, c.everything(f.all)...)
	}
	return steps
}

// maxWaitLocks bounds the mailboxes that a close locks: the server has room for some thousands of
// locks in all.
const maxWaitLocks = 100

// everything reads all that the close of jobs cancels (C15), and the instances with children. It
// keeps what is known already, since plans of this batch may have changed it. Waits are read
// first. A signal that is delivered meanwhile then ends or counts a wait that was seen here, and
// the close loses its test-and-set; in the other order the close could miss both the wake-up and
// the wait. A repeating wait could make it lose for ever, so it locks the mailboxes of those
// first.
func (c *committer) everything(jobs []journal.JobID) []step {
	ids := [][]byte{pUUIDs(jobs)}
	return []step{
		{name: "load_row_locks", params: ids},
		{name: "load_wait_locks", params: [][]byte{ids[0], pInt(maxWaitLocks)}},
		{"load_all_waits", ids, func(v row) error {
			x := readWait(v)
			waits := c.states[x.Job].Waits
			if old, known := waits[x.GUID]; !known || old != nil {
				waits[x.GUID] = x // counted since it was read alone
			}
			return nil
		}},
		{"load_all_rows", ids, func(v row) error {
			x, err := readRow(v)
			if err != nil {
				return err
			}
			st := c.states[x.Job]
			if !x.Sender.IsZero() {
				st = c.states[x.Sender]
			}
			know(st.Rows, x.GUID, x)
			return nil
		}},
		{"load_children", ids, func(v row) error {
			key := collation.InstanceKey{Activity: v.text(1), DAD: collation.DAD(v.text(2))}
			know(c.states[v.job(0)].Instances, key, readInstance(v[3:]))
			return nil
		}},
	}
}

// know sets a member unless it is known.
func know[K comparable, V any](m map[K]V, k K, v V) {
	if _, known := m[k]; !known {
		m[k] = v
	}
}

// ref is a result whose output is stored beside its entry (E6).
type ref struct {
	job    journal.JobID
	digest journal.Digest
	result *flow.Result
}

// payloads reads the outputs that are stored beside their entries. They are too large for a
// message, so a trip of their own is worth it.
func (c *committer) payloads(ctx context.Context) error {
	refs := c.refs
	if c.refs = nil; len(refs) == 0 {
		return nil
	}
	err := c.conn.run(ctx, asked("load_payloads", refs, func(c *columns, x ref) { c.uuid(x.job); c.bytes(x.digest[:]) },
		func(x ref, v row) error { x.result.Output = v.bytes(1); return nil })...)
	if err != nil {
		return err
	}
	for _, x := range refs {
		if err := store.SamePayload(x.job, x.digest, x.result.Output); err != nil {
			return err
		}
	}
	return nil
}

// decode reads an entry that the store wrote, and checks nothing.
func decode(job journal.JobID, body []byte) (*journal.Entry, error) {
	e, err := journal.DecodeTrusted(journal.Record{Job: job, Body: body})
	if err != nil {
		return nil, fmt.Errorf("%w: job %s: %w", errCorrupt, job, err)
	}
	return e, nil
}
