package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
)

const (
	every  = 100 * time.Millisecond // between two samples
	glance = 5 * time.Second        // bounds one
)

// watcher samples a cell's database while it plays.
type watcher struct {
	c      *cell
	db     *pgx.Conn // nil until it is needed, and after a loss
	st     *postgres.Store
	before chains
	acked  []json.RawMessage // not looked at yet
	broken []error           // by the first sample in which something was wrong
	at     time.Time

	samples, acks, verified int // what was looked at; a job as often as it had grown
}

// watch looks at the database while the cell plays, until it is stopped; then it
// says what it has seen.
func (c *cell) watch() (stop func()) {
	w := &watcher{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		w.last()
	})
	c.t.Cleanup(stop) // a cell that fails has not stopped it
	return stop
}

func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = w.look(ctx) // the database is away, which is no failure
		}
	}
}

// last takes the last sample, with what was acked at the end, and reports.
func (w *watcher) last() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := w.look(ctx)
	for ; err != nil && ctx.Err() == nil; err = w.look(ctx) {
		time.Sleep(look)
	}
	w.c.t.Logf("watched in %d samples, with %d acks and %d jobs verified", w.samples, w.acks, w.verified)
	switch {
	case err != nil:
		w.c.t.Errorf("the watcher cannot look at the database: %v", err)
	case len(w.broken) > 0:
		w.c.t.Errorf("at %s, while the cell played, in %s", w.at.UTC().Format("15:04:05.000"), w.explain(ctx))
	case w.acks == 0 && !w.c.kind.loses && !w.c.t.Failed(): // those end the samples before the jobs end
		w.c.t.Errorf("I8: jobs have ended, and no process has told what it acked")
	}
	w.close()
}

// explain says what the broken sample was, with the journals as they are now.
func (w *watcher) explain(ctx context.Context) string {
	w.close() // it may have been cut since
	var err error
	if w.db, err = connect(ctx, w.c.dsn, w.c.space); err != nil {
		return errors.Join(append(w.broken, err)...).Error()
	}
	return w.c.explain(ctx, w.db, w.broken)
}

func (w *watcher) close() {
	if w.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.db.Close(ctx)
		w.db = nil
	}
	if w.st != nil {
		w.st.Close()
		w.st = nil
	}
}

// look takes one sample, in one snapshot. Its error says that it could not.
func (w *watcher) look(ctx context.Context) (err error) {
	if len(w.broken) > 0 {
		return nil // what follows is its consequence
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.db == nil {
		if w.db, err = connect(ctx, w.c.dsn, w.c.space); err != nil {
			return err
		}
		if w.st, err = verifier(ctx, w.c.dsn, w.c.space); err != nil {
			return err
		}
	}
	w.acked = append(w.acked, w.c.control.acked()...) // before the snapshot, which then has what they stand for
	tx, err := w.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	now, broken, err := watched(ctx, tx, w.before, w.acked)
	if err != nil {
		return err
	}
	if grown := now.grown(w.before); len(grown) > 0 {
		err := verified(ctx, w.st, grown, false)
		if is := (*wrong)(nil); errors.As(err, &is) {
			broken = append(broken, err)
		} else if err != nil {
			return err
		}
		w.verified += len(grown)
	}
	w.samples, w.acks = w.samples+1, w.acks+len(w.acked)
	w.before, w.acked, w.broken, w.at = now, nil, broken, time.Now()
	return nil
}

// watched holds one snapshot to what is true at any time: beside the sample before, and beside
// what was acked before it.
func watched(ctx context.Context, db looker, before chains, acked []json.RawMessage) (chains, []error, error) {
	now, err := take(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	found := []error{wrongIf("I10", now.since(before)), totalLaw.hold(ctx, db, bankTotal), answered(ctx, db, acked)}
	var broken []error
	for _, err := range found {
		if is := (*wrong)(nil); err != nil && !errors.As(err, &is) {
			return nil, nil, err
		} else if err != nil {
			broken = append(broken, err)
		}
	}
	return now, broken, nil
}

// chain is one of a job.
type chain struct {
	job journal.JobID
	id  journal.GUID
}

// chains are those of a sample: the hashes of each, one behind another. They only grow, and what
// the tables say follows from them.
type chains map[chain][]byte

// take reads a sample.
func take(ctx context.Context, db looker) (chains, error) {
	rows, err := db.Query(ctx, "SELECT job, chain, string_agg(hash, ''::bytea ORDER BY seq) FROM entries GROUP BY job, chain")
	if err != nil {
		return nil, err
	}
	s := chains{}
	var c chain
	var hashes []byte
	_, err = pgx.ForEachRow(rows, []any{&c.job, &c.id, &hashes}, func() error {
		s[c] = bytes.Clone(hashes)
		return nil
	})
	return s, err
}

// since says what is gone since the sample before, or is another (I10).
func (s chains) since(before chains) (lines []string) {
	for c, was := range before {
		if is := s[c]; !bytes.HasPrefix(is, was) {
			lines = append(lines, fmt.Sprintf("chain %s of job %s: %d entries were there, of what is now %d others stand first, or fewer", c.id, c.job, len(was)/32, len(is)/32))
		}
	}
	return lines
}

// grown are the jobs of which something was recorded since the sample before.
func (s chains) grown(before chains) []journal.JobID {
	ids := map[journal.JobID]bool{}
	for c, is := range s {
		if len(is) > len(before[c]) {
			ids[c.job] = true
		}
	}
	return slices.Collect(maps.Keys(ids))
}

// answeredLaw is I8, of messages that were about to be acked: each is settled, or
// its row is gone, held, or waits for another message. A signal's row may have
// been kept, and be due again by now. The order of a job is settled when that has
// begun, which has its own start to handle.
var answeredLaw = law{"I8", `
	SELECT format('job %s: %s %s of row %s, turn %s, was acked; its receipt: %s; its row: %s', a.job, a.kind, a.guid, a.row, a.turn,
		CASE WHEN r.guid IS NULL THEN 'none' ELSE lpad(r.ledger::text, 15, '0') END,
		CASE WHEN d.guid IS NULL THEN 'none' ELSE format('%s, turn %s, publication %s, due %s', d.kind, d.turn, d.publication, d.next_at) END)
	FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::bool[]) a(job, row, guid, kind, turn, orders)
		LEFT JOIN receipts r ON r.job = a.job AND r.guid = a.guid
		LEFT JOIN dispatches d ON d.job = a.job AND d.guid = a.row
	WHERE CASE
		WHEN r.verdict = 'stale' THEN false
		WHEN a.orders AND EXISTS (SELECT FROM jobs j WHERE j.id = a.job) THEN false
		WHEN r.guid IS NOT NULL THEN r.ledger / 1000000000 % 10 = 0 OR r.ledger / 100000000000 % 10 = 1 AND r.ledger / 100000000 % 10 = 0
		WHEN d.guid IS NULL OR d.held IS NOT NULL OR d.dead THEN false
		WHEN a.kind = 'signal' THEN d.next_at IS NULL
		WHEN a.kind = 'response' THEN d.kind = 'request' AND d.turn = a.turn
		WHEN a.kind = 'answer' THEN d.kind = 'answer' AND d.turn = a.turn
		ELSE d.kind = a.kind END`}

// answered holds what was acked to I8. What it stands for is monotone: to look
// later than the ack is to see more of it, never less.
func answered(ctx context.Context, db looker, acked []json.RawMessage) error {
	var job, row, guid, kind []string
	var turn []int64
	var orders []bool
	for _, raw := range acked {
		h, err := wire.Decode[wire.Hint](raw)
		if err != nil {
			return wrongIf("I8", []string{fmt.Sprintf("%s was acked: %v", raw, err)})
		}
		g, err := journal.ParseGUID(h.Row)
		if err != nil {
			return wrongIf("I8", []string{fmt.Sprintf("%s was acked: %v", raw, err)})
		}
		if h.Kind == journal.MessageResponse || h.Kind == journal.MessageAnswer && h.Turn > 0 {
			g = collation.ResponseGUID(g, h.Turn)
		}
		job, row, guid = append(job, h.Job), append(row, h.Row), append(guid, g.String())
		kind, turn = append(kind, string(h.Kind)), append(turn, int64(h.Turn))
		orders = append(orders, h.Kind == journal.MessageStart && h.Flow == "") // the job has no flow before it begins
	}
	return answeredLaw.hold(ctx, db, job, row, guid, kind, turn, orders)
}
