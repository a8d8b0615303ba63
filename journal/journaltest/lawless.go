package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var lawless = cases{
	"a plan against the laws is refused whole (C3, C4, C14)": lawlessPlans,
	"a result that stands is not replaced (E5)":              lawlessResult,
	"digits do not carry, shrink or go back (C1, C4)":        lawlessMoves,
	"more elements cannot end than are open (V6)":            lawlessOpen,
	"a plan names a row and a wait once":                     lawlessTwice,
}

const (
	snapshot = collation.GUIDLedger(100_000_000_000)
	marker2  = collation.GUIDLedger(20_000_000_000)
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
	"semaphore from another value":  func(p *collation.Plan) { p.Semaphore = journal.SemaphoreMove{Before: 2, After: 2} },
	"semaphore moved from another":  func(p *collation.Plan) { p.Semaphore = journal.SemaphoreMove{Before: 2, After: 3} },
	"semaphore below zero (C13)":    func(p *collation.Plan) { p.Semaphore.After = -1 },
	"a close that is not predicted": func(p *collation.Plan) { p.Semaphore.After = 0 },
	"a predicted close that is none": func(p *collation.Plan) {
		p.Receipt.After, p.Receipt.Closes = p.Receipt.After+snapshot, true
		p.Close, p.NewState = &journal.Close{State: journal.JobCompleted, Code: collation.CodeOK}, journal.JobCompleted
	},
	"row that exists":  func(p *collation.Plan) { p.Insert = append(p.Insert, collation.Row{GUID: p.Job.Start(), Job: p.Job}) },
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

func lawlessPlans(b *bench) {
	f := b.deploy(one)
	for name, spoil := range unlawful {
		id := b.start(f, name)
		before := b.view(id)
		m := Message(&before.Rows[0])
		for _, gone := range []bool{false, true} { // the receipt stays, or goes (W12)
			st := got(b.load(b.c, m))(b).States[id]
			p := got(b.handler(b.c).Plan(b.ctx(), st, m))(b)
			p.Receipt.Gone = gone
			spoil(p)
			b.refuses(b.commit(store.Chain(&st.Job, p)), name)
			require.Equal(b, before, b.view(id), "%s: nothing is written", name)
		}
		b.must(m)
	}
}

// lawlessMoves writes instances by hand: to each value, and from there to none of those beside it.
func lawlessMoves(b *bench) {
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
		{{0, []collation.ActivityLedger{100_000_000}}, {1_000_000_000_000, []collation.ActivityLedger{1_000_100_000_000}}},
		{{10_200_000_000, []collation.ActivityLedger{
			10_100_000_000, 200_000_000, 300_000_000, 20_000_000_000, 20_200_000_000, 110_200_000_000, 0,
		}}},
	} {
		w := collation.LedgerWrite{Key: collation.InstanceKey{Activity: "work", DAD: collation.DAD(fmt.Sprint(",0,", n))}, New: true, Join: n == 3}
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
}

func lawlessOpen(b *bench) {
	id := b.jobs(1)[0]
	w := collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: collation.More{Open: -1}}
	b.refuses(b.alter(id, ledgers(w)))
	w.Open = 1
	b.altered(id, ledgers(w), opens(1))
	w.New, w.Before, w.Open = false, w.After, -1
	b.refuses(b.alter(id, ledgers(w)))
	require.Equal(b, 1, b.instance(id, workKey).Open)
}

func lawlessTwice(b *bench) {
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
}

// lawlessResult ends an effect twice, as if its outcome had not been read.
func lawlessResult(b *bench) {
	r := b.asked()
	l, e := b.lease(r, "w1"), effect("pay", 0)
	b.startEffect(l, e)
	stands := b.finishEffect(l, completed(e, `1`))
	loaded := b.locked(b.c, chainWant(&l, &e)...)
	loaded.Chains[l.Key()].Effects[e.Key].State = store.EffectStarted
	out := got(loaded.Chains[l.Key()].Finish(l, completed(e, `2`), false, effectMode))(b)
	require.ErrorIs(b, b.commit(store.Chained{Plan: out.Plan}), store.ErrLost)
	require.Equal(b, []store.EffectRow{stands}, got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b))
}
