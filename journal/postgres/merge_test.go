package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var (
	jobA, jobB, jobC = journal.JobID{0xa}, journal.JobID{0xb}, journal.JobID{0xc}
	rowX, rowY       = journal.GUID{1}, journal.GUID{2}
)

// step returns one plan of a job, in the order of its seqs.
func stepOf(job journal.JobID, seq int64, change func(*collation.Plan)) store.Chained {
	p := &collation.Plan{Job: job, Entry: &journal.Entry{Job: job, Seq: seq}}
	if change != nil {
		change(p)
	}
	return store.Chained{Plan: p, Body: []byte{byte(seq)}, Hash: journal.Digest{byte(seq)}}
}

func insert(g journal.GUID, turn int) func(*collation.Plan) {
	return func(p *collation.Plan) { p.Insert = []collation.Row{{GUID: g, Job: p.Job, Turn: turn}} }
}

func update(g journal.GUID, turn int) func(*collation.Plan) {
	return func(p *collation.Plan) { p.Update = []collation.Row{{GUID: g, Job: p.Job, Turn: turn}} }
}

func remove(g journal.GUID) func(*collation.Plan) {
	return func(p *collation.Plan) { p.Delete = []journal.GUID{g} }
}

func TestMergeRows(t *testing.T) {
	t.Parallel()
	type outcome struct {
		stood bool
		turn  int // 0: gone
	}
	for name, c := range map[string]struct {
		changes []func(*collation.Plan)
		want    []outcome
		fault   bool
	}{
		"inserted":                      {changes: []func(*collation.Plan){insert(rowX, 1)}, want: []outcome{{false, 1}}},
		"updated":                       {changes: []func(*collation.Plan){update(rowX, 2)}, want: []outcome{{true, 2}}},
		"deleted":                       {changes: []func(*collation.Plan){remove(rowX)}, want: []outcome{{true, 0}}},
		"inserted and deleted vanishes": {changes: []func(*collation.Plan){insert(rowX, 1), remove(rowX)}, want: nil},
		"inserted and updated":          {changes: []func(*collation.Plan){insert(rowX, 1), update(rowX, 2)}, want: []outcome{{false, 2}}},
		"updated twice":                 {changes: []func(*collation.Plan){update(rowX, 2), update(rowX, 3)}, want: []outcome{{true, 3}}},
		"updated and deleted":           {changes: []func(*collation.Plan){update(rowX, 2), remove(rowX)}, want: []outcome{{true, 0}}},
		"deleted and inserted":          {changes: []func(*collation.Plan){remove(rowX), insert(rowX, 5)}, want: []outcome{{true, 5}}},
		"two rows":                      {changes: []func(*collation.Plan){insert(rowX, 1), insert(rowY, 2)}, want: []outcome{{false, 1}, {false, 2}}},
		"inserted twice":                {changes: []func(*collation.Plan){insert(rowX, 1), insert(rowX, 1)}, fault: true},
		"deleted twice":                 {changes: []func(*collation.Plan){remove(rowX), remove(rowX)}, fault: true},
		"deleted and updated":           {changes: []func(*collation.Plan){remove(rowX), update(rowX, 1)}, fault: true},
		"named twice by one plan": {changes: []func(*collation.Plan){func(p *collation.Plan) {
			insert(rowX, 1)(p)
			remove(rowX)(p)
		}}, fault: true},
	} {
		var plans []store.Chained
		for i, change := range c.changes {
			plans = append(plans, stepOf(jobA, int64(i+7), change))
		}
		w, err := merge(plans)
		if c.fault {
			require.ErrorIs(t, err, errMerge, name)
			continue
		}
		require.NoError(t, err, name)
		var got []outcome
		for _, r := range w.rows {
			o := outcome{stood: r.stood}
			if r.after != nil {
				o.turn = r.after.Turn
			}
			got = append(got, o)
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestMergeJobs(t *testing.T) {
	t.Parallel()
	move := func(before, after int64) func(*collation.Plan) {
		return func(p *collation.Plan) { p.Semaphore = journal.SemaphoreMove{Before: before, After: after} }
	}
	w, err := merge([]store.Chained{
		stepOf(jobB, 4, move(1, 3)), stepOf(jobA, 9, move(5, 4)), stepOf(jobB, 5, move(3, 2)),
		{Plan: &collation.Plan{Job: jobA, Outcome: collation.Settled}},
		stepOf(jobB, 6, func(p *collation.Plan) { move(2, 2)(p); p.NewState = journal.JobQuarantined }),
	})
	require.NoError(t, err)
	require.Equal(t, []*jobWrite{
		{job: jobA, semBefore: 5, semAfter: 4, seqBefore: 8, seqAfter: 9, hash: journal.Digest{9}},
		{job: jobB, semBefore: 1, semAfter: 2, seqBefore: 3, seqAfter: 6, hash: journal.Digest{6}, state: journal.JobQuarantined},
	}, w.jobs, "one write per job, in the order of ids")
	require.Len(t, w.entries, 4)

	for name, plans := range map[string][]store.Chained{
		"a gap in the seqs":      {stepOf(jobA, 1, nil), stepOf(jobA, 3, nil)},
		"a semaphore that jumps": {stepOf(jobA, 1, move(1, 2)), stepOf(jobA, 2, move(1, 2))},
	} {
		_, err := merge(plans)
		require.ErrorIs(t, err, errMerge, name)
	}
}

func TestMergeLedgers(t *testing.T) {
	t.Parallel()
	key := collation.InstanceKey{Activity: "a", DAD: ",0"}
	ledger := func(fresh bool, before, after collation.ActivityLedger, seq int64) func(*collation.Plan) {
		return func(p *collation.Plan) {
			p.Ledgers = []collation.LedgerWrite{{Key: key, New: fresh, Before: before, After: after, ResultSeq: seq}}
		}
	}
	w, err := merge([]store.Chained{stepOf(jobA, 1, ledger(true, 0, 1, 0)), stepOf(jobA, 2, ledger(false, 1, 3, 2))})
	require.NoError(t, err)
	require.Len(t, w.instances, 1)
	require.Equal(t, collation.LedgerWrite{Key: key, New: true, After: 3, ResultSeq: 2}, w.instances[0].LedgerWrite)
	_, err = merge([]store.Chained{stepOf(jobA, 1, ledger(true, 0, 1, 0)), stepOf(jobA, 2, ledger(false, 2, 3, 2))})
	require.ErrorIs(t, err, errMerge)

	receipt := func(r collation.ReceiptWrite) func(*collation.Plan) {
		return func(p *collation.Plan) { p.Receipt = &r }
	}
	closing := []store.Chained{
		stepOf(jobA, 1, receipt(collation.ReceiptWrite{GUID: rowX, New: true, After: 1, Seq: 1})),
		stepOf(jobA, 2, receipt(collation.ReceiptWrite{GUID: rowX, Before: 1, After: 2, Seq: 1, Closes: true})),
		stepOf(jobA, 3, func(p *collation.Plan) {
			p.Receipt, p.Tasks = &collation.ReceiptWrite{GUID: rowX, Before: 2, After: 3, Seq: 1}, true
		}),
	}
	w, err = merge(closing)
	require.NoError(t, err)
	require.Len(t, w.receipts, 1)
	require.Equal(t, collation.ReceiptWrite{GUID: rowX, New: true, After: 3, Seq: 1, Closes: true}, w.receipts[0].ReceiptWrite)
	require.Same(t, w.receipts[0], w.jobs[0].closer)
	require.Equal(t, int64(2), w.jobs[0].closeSeq)
	require.Equal(t, int64(3), w.jobs[0].tasksSeq)
	closing = append(closing, stepOf(jobA, 4, receipt(collation.ReceiptWrite{GUID: rowY, New: true, Closes: true})))
	_, err = merge(closing)
	require.ErrorIs(t, err, errMerge, "a job closes once (C14)")
}

func TestMergeLetters(t *testing.T) {
	t.Parallel()
	w, err := merge([]store.Chained{
		stepOf(jobA, 1, func(p *collation.Plan) {
			p.Dead = []collation.DeadLetter{{Job: jobA, Row: rowX}, {Job: jobA, Row: rowY}}
		}),
		stepOf(jobA, 2, func(p *collation.Plan) { p.Resolve = []journal.GUID{rowX} }),
	})
	require.NoError(t, err)
	require.Equal(t, collation.LetterAnswered, w.letters[0].state)
	require.Equal(t, collation.LetterOpen, w.letters[1].state)
	require.Equal(t, []rowKey{{jobA, rowX}}, w.resolve)
}

// Rows of other jobs are keyed by the job that they are addressed to. A cancelled start names its
// sender (C15).
func TestMergeRowsOfOthers(t *testing.T) {
	t.Parallel()
	start := collation.Row{GUID: rowX, Job: jobB, Sender: jobA}
	order := func(p *collation.Plan) { p.Insert = []collation.Row{start} }
	recall := func(p *collation.Plan) { p.CancelStarts = []collation.RowKey{{Job: jobB, GUID: rowX}} }
	w, err := merge([]store.Chained{stepOf(jobA, 1, order), stepOf(jobA, 2, insert(rowX, 3)), stepOf(jobB, 1, insert(rowY, 4))})
	require.NoError(t, err)
	keys := map[rowKey]bool{}
	for _, r := range w.rows {
		keys[r.key] = true
	}
	require.Equal(t, map[rowKey]bool{{jobB, rowX}: true, {jobA, rowX}: true, {jobB, rowY}: true}, keys)

	w, err = merge([]store.Chained{stepOf(jobA, 1, recall)})
	require.NoError(t, err)
	require.Len(t, w.rows, 1)
	require.Equal(t, rowKey{jobB, rowX}, w.rows[0].key)
	require.Equal(t, jobA, w.rows[0].sender)
	require.True(t, w.rows[0].stood)

	w, err = merge([]store.Chained{stepOf(jobA, 1, order), stepOf(jobA, 2, recall)})
	require.NoError(t, err)
	require.Empty(t, w.rows, "it comes and goes in one batch")
	_, err = merge([]store.Chained{stepOf(jobA, 1, recall), stepOf(jobA, 2, recall)})
	require.ErrorIs(t, err, errMerge)
	_, err = merge([]store.Chained{stepOf(jobA, 1, order), stepOf(jobC, 1, order)})
	require.ErrorIs(t, err, errMerge, "two jobs insert one row")
}

func TestMergeWaits(t *testing.T) {
	t.Parallel()
	register := func(g journal.GUID, key string) func(*collation.Plan) {
		return func(p *collation.Plan) {
			p.Entry.Space = "s"
			p.Waits = []collation.Wait{{GUID: g, Job: p.Job, Topic: "t", Key: key}}
		}
	}
	take := func(g journal.GUID, count int) func(*collation.Plan) {
		return func(p *collation.Plan) { p.CancelWaits = []collation.CancelledWait{{GUID: g, Count: count}} }
	}
	w, err := merge([]store.Chained{
		stepOf(jobA, 1, register(rowX, "k")), stepOf(jobB, 1, register(rowX, "k")), stepOf(jobA, 2, register(rowY, "l")),
		stepOf(jobA, 3, take(rowX, 0)), stepOf(jobB, 2, take(rowY, 4)),
	})
	require.NoError(t, err)
	require.Len(t, w.waits, 3)
	require.ElementsMatch(t, []journal.JobID{collation.Mailbox("s", "t", "k"), collation.Mailbox("s", "t", "l")}, w.registers())
	for _, x := range w.waits {
		switch x.key {
		case rowKey{jobB, rowY}:
			require.True(t, x.stood && x.after == nil && x.seen == 4)
		default:
			require.True(t, !x.stood && x.after != nil)
		}
	}
	for name, plans := range map[string][]store.Chained{
		"registered twice":            {stepOf(jobA, 1, register(rowX, "k")), stepOf(jobA, 2, register(rowX, "k"))},
		"taken back twice":            {stepOf(jobA, 1, take(rowX, 0)), stepOf(jobA, 2, take(rowX, 0))},
		"registered again":            {stepOf(jobA, 1, take(rowX, 0)), stepOf(jobA, 2, register(rowX, "k"))},
		"by one plan, back and forth": {stepOf(jobA, 1, func(p *collation.Plan) { register(rowX, "k")(p); take(rowX, 0)(p) })},
	} {
		_, err := merge(plans)
		require.ErrorIs(t, err, errMerge, name)
	}
}

// The last plan decides what an instance has besides its digits; a join stays a join.
func TestMergeMore(t *testing.T) {
	t.Parallel()
	key := collation.InstanceKey{Activity: "a", DAD: ",0"}
	move := func(w collation.LedgerWrite) func(*collation.Plan) {
		w.Key = key
		return func(p *collation.Plan) { p.Ledgers = []collation.LedgerWrite{w} }
	}
	w, err := merge([]store.Chained{
		stepOf(jobA, 1, move(collation.LedgerWrite{New: true, Join: true, After: 1, More: collation.More{Open: 3, Count: 3}})),
		stepOf(jobA, 2, move(collation.LedgerWrite{Before: 1, After: 1, More: collation.More{Open: 2, Count: 3}})),
	})
	require.NoError(t, err)
	require.Equal(t, collation.LedgerWrite{
		Key: key, New: true, Join: true, After: 1, More: collation.More{Open: 2, Count: 3},
	}, w.instances[0].LedgerWrite)

	w, err = merge([]store.Chained{stepOf(jobA, 1, func(p *collation.Plan) { p.Tasks, p.ExpiresAt = true, 9 })})
	require.NoError(t, err)
	require.Equal(t, collation.Micros(9), w.jobs[0].expires)
}
