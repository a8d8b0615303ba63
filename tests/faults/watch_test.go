package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/tests/faults/play"
	"github.com/quipu-journal/quipu/wire"
)

const (
	every  = 100 * time.Millisecond // between two samples
	glance = 5 * time.Second        // bounds one
)

// watcher samples a cell's database while it plays.
type watcher struct {
	c       *cell
	db      *pgx.Conn // nil until it is needed, and after a loss
	before  *sample
	acked   []json.RawMessage // not looked at yet
	samples int
	acks    int     // looked at
	broken  []error // by the first sample in which something was wrong
	at      time.Time
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
	w.c.t.Logf("watched in %d samples, with %d acks", w.samples, w.acks)
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
	w.samples, w.acks = w.samples+1, w.acks+len(w.acked)
	w.before, w.acked, w.broken, w.at = now, nil, broken, time.Now()
	return nil
}

// watched holds one snapshot to what is true at any time: by itself, beside the
// sample before, and beside what was acked before it.
func watched(ctx context.Context, db looker, before *sample, acked []json.RawMessage) (*sample, []error, error) {
	now, err := take(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	found := []error{
		wrongIf("I10", now.since(before)), digitsLaw.hold(ctx, db), semaphoreLaw.hold(ctx, db),
		closedOnceLaw.hold(ctx, db), obligationLaw.hold(ctx, db),
		totalLaw.hold(ctx, db, play.Total), answered(ctx, db, acked),
	}
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

// sample is what only grows.
type sample struct {
	numbers map[string]int64  // ledgers, counters, by kind and name
	chains  map[string][]byte // the hashes of each, one behind another
}

// take reads a sample.
func take(ctx context.Context, db looker) (*sample, error) {
	s := &sample{numbers: map[string]int64{}, chains: map[string][]byte{}}
	rows, err := db.Query(ctx, `
		SELECT 'activity ledger of job ' || job || ' ' || activity || ' ' || dad_text, ledger FROM instances
		UNION ALL SELECT 'GUID ledger of job ' || job || ' ' || guid, ledger FROM receipts
		UNION ALL SELECT 'head of job ' || id, head_seq FROM jobs
		UNION ALL SELECT 'effect of job ' || job || ' ' || encode(key, 'hex'), (state = 'completed')::int FROM effects
		UNION ALL SELECT 'publication of job ' || job || ' ' || guid, publication FROM dispatches
		UNION ALL SELECT 'turn of job ' || job || ' ' || guid, turn FROM dispatches
		UNION ALL SELECT 'fence of job ' || job || ' ' || guid, fence FROM dispatches`)
	if err != nil {
		return nil, err
	}
	var name string
	var number int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &number}, func() error { s.numbers[name] = number; return nil }); err != nil {
		return nil, err
	}
	rows, err = db.Query(ctx, "SELECT 'chain of job ' || job || ' ' || chain, string_agg(hash, ''::bytea ORDER BY seq) FROM entries GROUP BY job, chain")
	if err != nil {
		return nil, err
	}
	var hashes []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &hashes}, func() error { s.chains[name] = bytes.Clone(hashes); return nil })
	return s, err
}

// groups are where the groups of digits of a ledger end, in powers of ten (1.2,
// 1.3): a carry from one into the next is no growth.
var groups = map[string][]int64{
	"activity": {1e14, 1e12, 1e11, 1e10, 1e8, 1},
	"GUID":     {1e11, 1e10, 1e9, 1e8, 1},
}

// since says what has decreased, or is gone, since the sample before (I10). Rows
// of messages that ended are gone rightly, with their receipts, but for that of the
// close (W12).
func (s *sample) since(before *sample) (lines []string) {
	if before == nil {
		return nil
	}
	for name, was := range before.numbers {
		var kind, rest string
		_, _ = fmt.Sscan(name, &kind, &rest)
		is, stands := s.numbers[name]
		row := kind == "publication" || kind == "turn" || kind == "fence" || kind == "GUID" && was/1e11 == 0
		switch {
		case !stands && row:
		case !stands:
			lines = append(lines, fmt.Sprintf("%s was %d and is gone", name, was))
		case is < was, shrinks(was, is, groups[kind]):
			lines = append(lines, fmt.Sprintf("%s went from %d to %d", name, was, is))
		}
	}
	for name, was := range before.chains {
		if is := s.chains[name]; !bytes.HasPrefix(is, was) {
			lines = append(lines, fmt.Sprintf("%s: %d entries were there, of what is now %d others stand first, or fewer", name, len(was)/32, len(is)/32))
		}
	}
	return lines
}

// shrinks reports whether any group of digits is smaller after.
func shrinks(before, after int64, units []int64) bool {
	for _, unit := range units {
		if after/unit < before/unit {
			return true
		}
		before, after = before%unit, after%unit
	}
	return false
}

// obligationLaw is I6 at any time. What stands for an obligation is a row that is to
// be sent or is held for a person, and not the request of a function that sleeps:
// for that its timer or its wait stands.
var obligationLaw = law{"I6", []string{
	`WITH ` + obligations + `
	SELECT format('job %s (%s): nothing stands for %s %s', o.job, j.key, o.activity, o.dad)
	FROM obligation o JOIN jobs j ON j.id = o.job
	WHERE j.state = 'open'
		AND NOT EXISTS (SELECT FROM dispatches d WHERE d.job = o.job AND d.activity = o.activity AND d.dad = o.dad
			AND (d.next_at IS NOT NULL OR d.held IS NOT NULL OR d.dead
				OR d.holder IS NOT NULL AND EXISTS (SELECT FROM sessions s WHERE s.id = d.session)))
		AND NOT EXISTS (SELECT FROM waits w WHERE w.job = o.job AND w.activity = o.activity AND w.dad = o.dad)
		AND NOT EXISTS (SELECT FROM dead_letters l WHERE l.job = o.job AND l.activity = o.activity AND l.dad = o.dad AND l.state = 'open')
		AND NOT EXISTS (SELECT FROM instances i WHERE i.job = o.job AND i.activity = o.activity AND i.dad_text = o.dad AND i.child IS NOT NULL
			AND (EXISTS (SELECT FROM dispatches s WHERE s.job = i.child AND s.kind = 'start')
				OR EXISTS (SELECT FROM jobs k WHERE k.id = i.child AND (k.state = 'open' OR k.tasks_seq IS NULL))))`,
	`SELECT format('job %s: the function of %s %s waits for %s, and nothing will bring it', d.job, d.activity, d.dad, p)
	FROM dispatches d, jsonb_array_elements(convert_from(d.pauses, 'UTF8')::jsonb) p
	WHERE d.kind = 'request' AND p -> 'came' IS DISTINCT FROM 'true'
		AND NOT EXISTS (SELECT FROM dispatches w WHERE w.job = d.job AND w.kind = 'wakeup' AND w.activity = d.activity AND w.dad = d.dad
			AND (w.guid::text = p ->> 'guid' OR p -> 'taken' = 'true'))
		AND NOT EXISTS (SELECT FROM waits w WHERE w.job = d.job AND w.guid::text = p ->> 'guid')`,
	`SELECT format('job %s (%s) is closed, its completion tasks have not run, and nothing stands for them', id, key)
	FROM jobs WHERE state <> 'open' AND tasks_seq IS NULL AND NOT EXISTS (SELECT FROM dispatches WHERE job = id)`,
	`SELECT format('job %s: row %s %s of %s %s is of entry %s, which sends it nothing', job, kind, guid, activity, dad, origin)
	FROM dispatches d WHERE kind <> 'signal' AND NOT EXISTS (SELECT FROM entries e
		WHERE e.seq = d.origin AND (e.job = d.job OR kind IN ('start', 'outcome'))
			AND e.chain = '00000000-0000-0000-0000-000000000000' AND (position(translate(rtrim(encode(uuid_send(d.guid), 'base64'), '='), '+/', '-_') IN convert_from(e.body, 'UTF8')) > 0
				OR convert_from(e.body, 'UTF8') ~ '"(s|el|w)":\[' AND (d.activity = '' OR position(to_json(d.activity)::text IN convert_from(e.body, 'UTF8')) > 0)))`,
	`SELECT format('job %s (%s) is quarantined', id, key) FROM jobs WHERE state = 'quarantined'`,
}}

// answeredLaw is I8, of messages that were about to be acked: each is settled, or
// its row is gone, held, or waits for another message. A signal's row may have
// been kept, and be due again by now. The order of a job is settled when that has
// begun, which has its own start to handle.
var answeredLaw = law{"I8", []string{
	`SELECT format('job %s: %s %s of row %s, turn %s, was acked; its receipt: %s; its row: %s', a.job, a.kind, a.guid, a.row, a.turn,
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
		ELSE d.kind = a.kind END`,
}}

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
