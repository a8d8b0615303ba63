package postgres

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// It runs a job. After every plan it compares what is loaded with the state that the
// plans so far were applied to.
var _ = test("Commit", "load after a commit is the state that was applied", func(b *bench) {
	id := b.start(b.deploy(twoBranches), "k")
	todo := []*collation.Message{journaltest.Message(&b.view(id).Rows[0])}
	instances := map[collation.InstanceKey]*collation.Instance{}
	for ; len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		var st *collation.State
		p := must(b.s.Handle(b.ctx(),
			func(is *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
				st = is
				return b.step(st, m)
			}, m))(b)[0]
		again := b.look(journaltest.WantOf(m)).States[id]
		key := collation.InstanceKey{Activity: m.Activity, DAD: m.DAD}
		require.Equal(b, []any{st.Job, st.Instances[key], st.Rows[m.Row]},
			[]any{again.Job, again.Instances[key], again.Rows[m.Row]})
		if receipt := again.Receipts[m.GUID]; receipt != nil {
			require.Equal(b, st.Receipts[m.GUID].Ledger, receipt.Ledger)
		}
		for key, i := range st.Instances {
			instances[key] = i
		}
		todo = append(todo, caused(p)...)
	}
	v := b.view(id)
	require.True(b, v.Ended)
	for _, i := range v.Instances {
		require.Equal(b, *instances[i.Key], i.Instance)
	}
})

// caused returns the messages of the rows that a plan inserts; workers answer at once.
func caused(p *collation.Plan) (out []*collation.Message) {
	for i := range p.Insert {
		if r := &p.Insert[i]; r.Kind == journal.MessageRequest {
			out = append(out, journaltest.Response(r, journaltest.Success(`{}`)))
		} else {
			out = append(out, journaltest.Message(r))
		}
	}
	return out
}

var _ = test("Commit", "batches of many sizes (J6)", func(b *bench) {
	for _, n := range []int{1, 3, 50, store.MaxBatch} {
		ids := b.jobs(n)
		var ms []*collation.Message
		for _, id := range ids {
			ms = append(ms, &collation.Message{
				Kind: journal.MessageStart, Job: id, GUID: id.Start(), Row: id.Start(), Activity: "start",
				DAD: collation.RootDAD,
			})
		}
		for len(ms) > 0 {
			plans := must(b.s.Handle(b.ctx(), b.step, ms...))(b)
			ms = nil
			for _, p := range plans {
				ms = append(ms, caused(p)...)
			}
		}
		ended := must(b.s.Ended(b.ctx(), ids))(b)
		require.Len(b, ended, n)
		for _, id := range ids {
			require.True(b, ended[id])
		}
		b.audit(ids[0], ids[n/2], ids[n-1])
	}
})

// series commits changes of one job as plans of one batch.
func (b *bench) series(id journal.JobID, changes ...change) error {
	l, err := b.c.Load(b.ctx(), []store.Want{{Job: id}}, true)
	if err != nil {
		return err
	}
	var plans []store.Chained
	st := l.States[id]
	for _, add := range changes {
		p := handmade(st, &collation.Message{Job: id})
		add(p, st)
		plans = append(plans, store.Chain(&st.Job, p))
		st.Apply(p)
	}
	return b.commit(plans...)
}

// It moves an instance twice, and an output pointer, registers waits and cancels one of
// them, in one transaction.
var _ = test("Commit", "several plans of a job are one commit (J6)", func(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	kept := b.signal("t", "k", "x")
	require.Equal(b, store.SignalKept, b.tell(kept).State)
	last := collation.More{Leg1: guid(3), Turn: 7}
	require.NoError(b, b.series(id,
		all(ledgers(collation.LedgerWrite{Key: workKey, New: true, Join: true, After: 10_200_000_000}),
			results(pass, true, `1`)),
		all(ledgers(collation.LedgerWrite{
			Key: workKey, Join: true, Before: 10_200_000_000, After: 1_010_200_000_000,
			More: fullMore,
		}),
			waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "l"})),
		all(ledgers(collation.LedgerWrite{
			Key: workKey, Join: true, Before: 1_010_200_000_000,
			After: 1_010_200_000_000, More: last,
		}),
			results(pass, false, `2`), cancelsWait(guid(1), 0)),
	))
	require.Equal(b, &collation.Instance{Ledger: 1_010_200_000_000, More: last}, b.instance(id, workKey))
	require.Equal(b, `2`, string(b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results[pass].Output))
	v := b.view(id)
	require.Len(b, v.Waits, 1)
	require.Equal(b, guid(2), v.Waits[0].GUID)
	require.Equal(b, collation.HeldKept, b.stored(id, b.box(kept)).Held, "nobody waits for it any more")
})

// It loses a row when everything else of a plan was right.
var _ = test("Commit", "a plan is whole or not at all (C3)", func(b *bench) {
	ids := b.jobs(2)
	child := b.order(ids[0], 1, true)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	kept := b.signal("t", "new", "x")
	b.tell(kept)
	before, other := b.view(ids[0]), b.view(ids[1])
	reply := b.reply(&child, 200)
	reply.Job = ids[1]
	err := b.alter(ids[0],
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}),
		inserts(*reply), cancelsStart(keyOf(&child)), cancelsWait(guid(1), 0),
		waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "new"}),
		func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, guid(8)) },
	)
	require.ErrorIs(b, err, store.ErrLost)
	require.Equal(b, []any{before, other, &child},
		[]any{b.view(ids[0]), b.view(ids[1]), b.stored(ids[0], keyOf(&child))})
	require.Equal(b, collation.HeldKept, b.stored(ids[0], b.box(kept)).Held)
})

var _ = test("Commit", "a session counts its commits (L1)", func(b *bench) {
	d := b.committer()
	s1, before := b.c.Session()
	s2, _ := d.Session()
	require.NotEqual(b, s1, s2)
	id := b.jobs(1)[0]
	for i := range 2 {
		b.altered(id)
		s, seq := b.c.Session()
		require.Equal(b, []any{s1, before + int64(i) + 1}, []any{s, seq})
	}
	require.Zero(b, must(b.s.Prune(b.ctx(), 100))(b), "young markers stay (J4)")
})

const (
	snapshot = collation.GUIDLedger(100_000_000_000)
	marker2  = collation.GUIDLedger(20_000_000_000)

	belowZero = "semaphore below zero (C13)"
)

// unlawful are changes of a lawful plan: that of a job's start message, with semaphore 1 → 1 and
// receipt 000010000000000 → 000011000000000.
var unlawful = map[string]func(p *collation.Plan){
	"head behind (J8)": func(p *collation.Plan) { p.Entry.Seq-- },
	"head ahead (J8)":  func(p *collation.Plan) { p.Entry.Seq++ },
	"head ahead, and the semaphore moves (J8)": func(p *collation.Plan) {
		p.Entry.Seq++
		p.Semaphore.After++
	},
	"receipt from another value":  func(p *collation.Plan) { p.Receipt.Before = 0 },
	"receipt that exists, as new": func(p *collation.Plan) { p.Receipt.New = true },
	"receipt that does not exist": func(p *collation.Plan) { p.Receipt.GUID = journal.GUID{1} },
	"marker digit 2":              func(p *collation.Plan) { p.Receipt.After = marker2 },
	"receipt that shrinks":        func(p *collation.Plan) { p.Receipt.After = 0 },
	"receipt that goes with an open step": func(p *collation.Plan) {
		p.Receipt.After, p.Receipt.Gone = p.Receipt.Before, true
	},
	"other ordinal (C6)":            func(p *collation.Plan) { p.Receipt.After++ },
	"step 3 without snapshot":       func(p *collation.Plan) { p.Receipt.After = 11_100_000_000 },
	"positions 1–3 of a receipt":    func(p *collation.Plan) { p.Receipt.After += 1_000_000_000_000 },
	"new receipt of a marker 2":     receipt(20_000_000_000),
	"new receipt of another":        receipt(12_000_000_000),
	"new receipt closed twice":      receipt(200_000_000_000),
	"new receipt of 13 digits":      receipt(1_000_000_000_000),
	"new receipt below zero":        receipt(-1),
	"new receipt, 2 before 1":       receipt(1_000_000_000),
	"new receipt, closed before 2":  receipt(110_000_000_000),
	"new receipt, 3 but not closed": receipt(11_100_000_000),
	"new receipt, stale, of a step": func(p *collation.Plan) { receipt(1)(p); p.Receipt.Verdict = journal.VerdictStale },
	"semaphore from another value":  func(p *collation.Plan) { p.Semaphore = journal.SemaphoreMove{Before: 2, After: 2} },
	"semaphore moved from another":  func(p *collation.Plan) { p.Semaphore = journal.SemaphoreMove{Before: 2, After: 3} },
	belowZero:                       func(p *collation.Plan) { p.Semaphore.After = -1 },
	"a close that is not predicted": func(p *collation.Plan) { p.Semaphore.After = 0 },
	"a predicted close that is none": func(p *collation.Plan) {
		p.Receipt.After, p.Receipt.Closes = p.Receipt.After+snapshot, true
		p.Close, p.NewState = &journal.Close{State: journal.JobCompleted, Code: collation.CodeOK}, journal.JobCompleted
	},
	"row that exists": func(p *collation.Plan) {
		p.Insert, p.Delete = append(p.Insert, collation.Row{GUID: p.Job.Start(), Job: p.Job}), nil
	},
	"row that is gone": func(p *collation.Plan) { p.Delete = append(p.Delete, journal.GUID{1}) },
	"update of a row that is gone": func(p *collation.Plan) {
		p.Update = append(p.Update, collation.Row{GUID: journal.GUID{1}, Job: p.Job, Kind: journal.MessageRequest})
	},
	"instance that exists, as new": ledger(",0", true, 0, collation.TriggerBorn),
	"instance that does not exist": ledger(",0,0", false, 0, 1_000_000_000_000),
	"instance from another value":  ledger(",0", false, 1_100_000_000_000, 101_100_000_000_002),
	"Leg1 complete without entry":  ledger(",0,0", true, 0, 100_000_000_000),
	"Leg1 complete twice":          ledger(",0,0", true, 0, 1_200_000_000_000),
	"finalized without Leg1":       ledger(",0,0", true, 0, 201_000_000_000_000),
	"state 3":                      ledger(",0,0", true, 0, 301_100_000_000_000),
	"trigger entered twice":        ledger(",0,0", true, 0, 102_100_000_000_001),
	"trigger entered eleven times": ledger(",0,0", true, 0, 111_100_000_000_001),
	"trigger without Leg1":         ledger(",0,0", true, 0, 101_000_000_000_001),
	"arrivals without a join":      ledger(",0,0", true, 0, 1_100_100_000_000),
	"join taken without a join":    ledger(",0,0", true, 0, 1_110_000_000_000),
	"16 digits":                    ledger(",0,0", true, 0, 1_001_100_000_000_000),
	"below zero":                   ledger(",0,0", true, 0, -1),
	"trigger that changes state":   ledger(",0", false, collation.TriggerBorn, 201_100_000_000_001),
}

// ledger adds a write of an instance to a plan.
func ledger(dad collation.DAD, fresh bool, before, after collation.ActivityLedger) func(*collation.Plan) {
	return func(p *collation.Plan) {
		key := collation.InstanceKey{Activity: "start", DAD: dad}
		p.Ledgers = append(p.Ledgers, collation.LedgerWrite{Key: key, New: fresh, Before: before, After: after})
	}
}

// receipt writes another receipt than the plan's.
func receipt(after collation.GUIDLedger) func(*collation.Plan) {
	return func(p *collation.Plan) {
		p.Receipt = &collation.ReceiptWrite{
			GUID: guid(1), New: true, After: after, Verdict: journal.VerdictHandled, Seq: p.Entry.Seq,
		}
	}
}

// moves moves that receipt, which is new at 0.
func moves(before, after collation.GUIDLedger, closes bool) change {
	return func(p *collation.Plan, _ *collation.State) {
		receipt(after)(p)
		p.Receipt.New, p.Receipt.Before, p.Receipt.Closes = before == 0, before, closes
	}
}

var _ = test("Lawless", "a plan against the laws is refused whole (C3, C4, C14)", func(b *bench) {
	f := b.deploy(oneWorker)
	for name, spoil := range unlawful {
		id := b.start(f, name)
		before := b.view(id)
		m := journaltest.Message(&before.Rows[0])
		for _, gone := range []bool{false, true} { // the receipt stays, or goes (W12)
			err := b.attempt(m, b.altering(func(p *collation.Plan) { p.Receipt.Gone = gone; spoil(p) }))
			if b.refuses(err, name); !gone && name != belowZero {
				require.ErrorIs(b, err, store.ErrLost, name)
			}
			require.Equal(b, before, b.view(id), "%s: nothing is written", name)
		}
		b.must(m)
	}
})

// It writes instances by hand: to each value, and from there to none of those beside it.
var _ = test("Lawless", "digits do not carry, shrink or go back (C1, C4)", func(b *bench) {
	id := b.jobs(1)[0]
	for n, steps := range [][]struct {
		is  collation.ActivityLedger
		not []collation.ActivityLedger
	}{
		{
			{89_000_000_000_000, []collation.ActivityLedger{89_200_000_000_000}},
			{99_000_000_000_000, []collation.ActivityLedger{100_000_000_000_000}},
			{99_100_000_000_000, nil},
			{99_100_099_999_999, []collation.ActivityLedger{99_100_100_000_000, 199_100_099_999_999}},
			{299_100_099_999_999, nil},
		},
		{{1_100_000_000_001, nil}, {201_100_000_000_001, []collation.ActivityLedger{
			1_100_000_000_001, 201_100_000_000_000, 201_000_000_000_001, 200_100_000_000_001, 101_100_000_000_001, 0,
		}}},
		{
			{0, []collation.ActivityLedger{100_000_000}},
			{1_000_000_000_000, []collation.ActivityLedger{1_000_100_000_000}},
		},
		{{10_200_000_000, []collation.ActivityLedger{
			10_100_000_000, 200_000_000, 300_000_000, 20_000_000_000, 20_200_000_000, 110_200_000_000, 0,
		}}},
	} {
		w := collation.LedgerWrite{
			Key: collation.InstanceKey{Activity: "work", DAD: collation.DAD(fmt.Sprint(",0,", n))}, New: true, Join: n == 3,
		}
		for _, step := range steps {
			if w.After = step.is; step.is > 0 {
				b.altered(id, ledgers(w))
				w.New, w.Before = false, step.is
			}
			for _, w.After = range step.not {
				b.refuses(b.alter(id, ledgers(w)), "%s → %s", w.Before, w.After)
			}
		}
	}
})

var _ = test("Lawless", "more elements cannot end than are open (V6)", func(b *bench) {
	id := b.jobs(1)[0]
	w := collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: collation.More{Open: -1}}
	b.refuses(b.alter(id, ledgers(w)))
	w.Open = 1
	b.altered(id, ledgers(w), opens(1))
	w.New, w.Before, w.Open = false, w.After, -1
	b.refuses(b.alter(id, ledgers(w)))
	require.Equal(b, 1, b.instance(id, workKey).Open)
})

var _ = test("Lawless", "a plan names a row and a wait once", func(b *bench) {
	row := b.asked()
	b.altered(row.Job, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	deletes := func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, row.GUID) }
	inserted := inserts(collation.Row{GUID: guid(2), Job: row.Job})
	before := b.view(row.Job)
	for name, twice := range map[string][2]change{
		"updated and deleted": {replaces(&row), deletes},
		"deleted twice":       {deletes, deletes},
		"updated twice":       {replaces(&row), replaces(&row)},
		"inserted twice":      {inserted, inserted},
		"taken back twice":    {cancelsWait(guid(1), 0), cancelsWait(guid(1), 0)},
	} {
		require.ErrorIs(b, b.alter(row.Job, twice[0], twice[1]), store.ErrRejected, name)
		require.Equal(b, before, b.view(row.Job), name)
	}
})

// cycles is a row of the job in a turn, which is its rev, too.
func cycles(st *collation.State, turn int) collation.Row {
	return collation.Row{
		GUID: guid(
			1,
		),
		Job:      st.Job.ID,
		Kind:     journal.MessageCycle,
		Activity: "work",
		DAD:      ",0,0",
		Request:  collation.Request{Turn: turn},
		Rev:      int64(turn),
	}
}

// turnOf is the turn of a row; 0: it is gone.
func (b *bench) turnOf(id journal.JobID, g journal.GUID) (turn int) {
	b.Helper()
	for _, r := range b.view(id).Rows {
		if r.GUID == g {
			turn = r.Turn
		}
	}
	return turn
}

// It commits two plans of a job together, of which the second is decided on what the first
// leaves, or is not. turn is that of the row then, which begins with 1; 0: it is gone.
var _ = test("Lawless", "plans of a batch follow one another (C3, J6)", func(b *bench) {
	const refused = -1
	f, g := b.deploy(oneWorker), guid(1)
	insert := func(turn int) change {
		return func(p *collation.Plan, st *collation.State) { inserts(cycles(st, turn))(p, st) }
	}
	update := func(turn int) change {
		return func(p *collation.Plan, st *collation.State) { p.Update = append(p.Update, cycles(st, turn)) }
	}
	remove := func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, g) }
	wait, child := waits(collation.Wait{GUID: g, Topic: "t", Key: "k"}), collation.RowKey{Job: journal.JobID(g), GUID: g}
	order := func(p *collation.Plan, st *collation.State) {
		inserts(collation.Row{
			GUID: g, Job: child.Job, Kind: journal.MessageStart, DAD: collation.RootDAD, Sender: st.Job.ID,
		})(p, st)
	}
	ledger := func(before, after collation.ActivityLedger) change {
		return ledgers(collation.LedgerWrite{Key: workKey, New: before == 0, Before: before, After: after})
	}
	for name, c := range map[string]struct {
		before, first, second change
		turn                  int
	}{
		"inserted and deleted":    {all(), insert(1), remove, 0},
		"inserted and updated":    {all(), insert(1), update(2), 2},
		"updated twice":           {insert(1), update(2), update(3), 3},
		"updated and deleted":     {insert(1), update(2), remove, 0},
		"deleted and inserted":    {insert(1), remove, insert(5), 5},
		"inserted twice":          {all(), insert(1), insert(1), refused},
		"deleted twice":           {insert(1), remove, remove, refused},
		"deleted and updated":     {insert(1), remove, update(2), refused},
		"a start cancelled twice": {order, cancelsStart(child), cancelsStart(child), refused},
		"registered twice":        {all(), wait, wait, refused},
		"taken back twice":        {wait, cancelsWait(g, 0), cancelsWait(g, 0), refused},
		"a receipt that goes on":  {all(), moves(0, 10_000_000_000, false), moves(10_000_000_000, 11_000_000_000, false), 0},
		"a receipt that is there": {all(), moves(0, 10_000_000_000, false), moves(0, 10_000_000_000, false), refused},
		"closed twice (C14)":      {all(), moves(0, 111_000_000_000, true), moves(111_000_000_000, 111_100_000_000, true), refused},
		"a ledger that is there":  {all(), ledger(0, 1_000_000_000_000), ledger(0, 1_000_000_000_000), refused},
		"a ledger that jumps":     {all(), ledger(0, 1_000_000_000_000), ledger(2_000_000_000_000, 3_000_000_000_000), refused},
		"a gap in the seqs":       {all(), all(), func(p *collation.Plan, _ *collation.State) { p.Entry.Seq++ }, refused},
		"a semaphore that jumps": {all(), all(), func(p *collation.Plan, _ *collation.State) {
			p.Semaphore = journal.SemaphoreMove{Before: p.Semaphore.Before + 1, After: p.Semaphore.After + 1}
		}, refused},
		"a letter and its answer": {
			insert(1), func(p *collation.Plan, _ *collation.State) {
				p.Dead = []collation.DeadLetter{{
					Job: p.Job, Row: g, Kind: journal.MessageCycle, Activity: "work", DAD: ",0,0", Reason: "stuck",
				}}
			},
			func(p *collation.Plan, _ *collation.State) { p.Resolve = []journal.GUID{g} }, 1,
		},
	} {
		id := b.start(f, name)
		b.altered(id, c.before)
		before := b.view(id)
		err := b.series(id, c.first, c.second)
		if c.turn == refused {
			b.refuses(err, name)
			require.Equal(b, before, b.view(id), name)
			continue
		}
		require.NoError(b, err, name)
		require.Equal(b, c.turn, b.turnOf(id, g), name)
	}
	require.Equal(b, collation.LetterAnswered, b.letters(true)[0].State)
})

// It ends an effect twice, as if its outcome had not been read.
var _ = test("Lawless", "a result that stands is not replaced (E5)", func(b *bench) {
	r := b.asked()
	l, e := b.lease(r, "w1"), effect("pay", 0)
	b.startEffect(l, e)
	stands := b.finishEffect(l, completed(e, `1`))
	loaded := b.locked(b.c, store.Want{Chain: l.Key(), Effects: []journal.Digest{e.Key}})
	loaded.Chains[l.Key()].Effects[e.Key].State = store.EffectStarted
	out := must(loaded.Chains[l.Key()].Finish(l, completed(e, `2`), false, b.mode))(b)
	require.ErrorIs(b, b.commit(store.Chained{Plan: out.Plan}), store.ErrLost)
	require.Equal(b, []store.EffectRow{stands}, must(b.s.Effects(b.ctx(), r.Job, r.GUID))(b))
})

var _ = test("Lawless", "a job that begins and closes in one commit closes at the threshold (C14)", func(b *bench) {
	f := b.deploy(`{flow: brief, version: "1", activities: {start: {type: trigger}}}`)
	begins := func(key string, spoil func(*collation.Plan)) (journal.JobID, error) {
		in := startOf(f, key, `{}`)
		first := collation.Begin(in.Inception(b.space(), 1), nil, b.mode)
		header := collation.Job{ID: first.Job, Space: b.space(), Generation: first.Entry.Generation}
		plans := []store.Chained{store.Chain(&header, first)}
		st := collation.Born(first, f)
		st.Job.Head = header.Head
		p := collation.Follow(st, journaltest.Message(st.Rows[first.Job.Start()]), b.mode)
		spoil(p)
		return first.Job, b.commit(append(plans, store.Chain(&st.Job, p))...)
	}
	id, err := begins("lawful", func(*collation.Plan) {})
	require.NoError(b, err)
	v := b.view(id)
	require.Equal(b, []any{journal.JobCompleted, true, int64(0), 0}, []any{v.State, v.Ended, v.Semaphore, len(v.Rows)})
	for name, spoil := range map[string]func(*collation.Plan){
		"a close above the threshold": func(p *collation.Plan) { p.Semaphore.After = 1 },
		"a close that is not predicted": func(p *collation.Plan) {
			p.Receipt.After, p.Receipt.Closes = p.Receipt.After-snapshot, false
		},
	} {
		_, err := begins(name, spoil)
		b.refuses(err, name)
	}
	require.Len(b, b.all(nil), 1)
})
