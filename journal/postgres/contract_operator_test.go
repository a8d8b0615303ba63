package postgres

import (
	"errors"
	"fmt"
	"iter"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

func (b *bench) letters(all bool) []store.DeadView {
	b.Helper()
	return must(b.s.DeadLetters(b.ctx(), store.DeadFilter{All: all, Limit: 100}))(b)
}

var _ = test("Letters", "letters are listed newest first, within the limit", func(b *bench) {
	var want []collation.DeadLetter
	for i := range 9 {
		d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: fmt.Sprint(i)}
		require.NoError(b, b.s.DeadLetter(b.ctx(), d, []byte{0, 0xff, '{'}))
		want = append([]collation.DeadLetter{d}, want...)
	}
	first := must(b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: 4}))(b)
	rest := must(b.s.DeadLetters(b.ctx(), store.DeadFilter{Before: first[3].ID}))(b)
	all := b.letters(false)
	require.Equal(b, all, append(first, rest...))
	for i, l := range all {
		require.Equal(b, store.DeadView{ID: l.ID, At: l.At, Letter: want[i], State: collation.LetterOpen}, l)
		require.Positive(b, l.At)
	}
})

// It lists the dead letters of one flow, topic, reason, prefix of a key, time or job.
var _ = test("Letters", "letters are asked for by what they are of", func(b *bench) {
	r := b.exhausted()
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "foreign", Message: "else"}, nil))
	v := b.view(r.Job)
	at := b.letters(false)[0].At // of the newest, which has no job
	for _, c := range []struct {
		f    store.DeadFilter
		want int
	}{
		{store.DeadFilter{}, 2},
		{store.DeadFilter{Flow: v.Flow.Name}, 1},
		{store.DeadFilter{Flow: "other"}, 0},
		{store.DeadFilter{Topic: r.Topic}, 1},
		{store.DeadFilter{Topic: "other"}, 0},
		{store.DeadFilter{Reason: "foreign"}, 1},
		{store.DeadFilter{Reason: "foreign", Flow: v.Flow.Name}, 0},
		{store.DeadFilter{Prefix: v.Key[:1]}, 1},
		{store.DeadFilter{Prefix: v.Key + "%"}, 0},
		{store.DeadFilter{From: at}, 1},
		{store.DeadFilter{To: at}, 1},
		{store.DeadFilter{From: at, To: at + 1, Reason: "foreign"}, 1},
		{store.DeadFilter{From: at + 1}, 0},
		{store.DeadFilter{Jobs: []journal.JobID{r.Job}}, 1},
		{store.DeadFilter{Jobs: []journal.JobID{{9}}}, 0},
	} {
		list := must(b.s.DeadLetters(b.ctx(), c.f))(b)
		require.Len(b, list, c.want, "%+v", c.f)
		for _, l := range list {
			if l.Letter.Job == r.Job {
				require.Equal(b, []string{v.Flow.Name, r.Topic}, []string{l.Flow, l.Topic})
			}
		}
	}
})

var _ = test("Letters", "a letter ends once, and its row is released (E10)", func(b *bench) {
	require.ErrorIs(b, failed(b.s.Letter(b.ctx(), 99)), store.ErrNotFound)
	r := b.exhausted()
	require.Equal(b, []any{collation.HeldStuck, true}, []any{r.Held, r.Dead})
	letter := b.letters(false)[0]
	seen := must(b.s.Letter(b.ctx(), letter.ID))(b)
	require.Equal(b, &collation.Letter{ID: letter.ID, Job: r.Job, Row: r.GUID, Reason: "runs", State: collation.LetterOpen},
		seen)
	require.Equal(b, map[int64]*collation.Letter{letter.ID: seen},
		b.look(store.Want{Letter: letter.ID}, store.Want{Letter: 99}).Letters)
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: letter.ID, Retry: true, Who: "ann"}))
	require.ErrorIs(b, b.alter(r.Job, func(p *collation.Plan, _ *collation.State) {
		p.Letters = []collation.LetterEnd{{ID: letter.ID, State: collation.LetterRetried}}
	}), store.ErrLost)
	require.Empty(b, b.letters(false))
	require.Equal(b, collation.LetterRetried, b.letters(true)[0].State)
	require.Equal(b, 1, must(b.s.Letter(b.ctx(), letter.ID))(b).Acted)
	require.Len(b, b.due(10), 1, "due at once")
})

// write writes n dead letters alike with one commit.
func (b *bench) write(n int, d collation.DeadLetter) {
	b.Helper()
	plans := make([]store.Chained, n)
	for i := range plans {
		plans[i].Plan = collation.WriteDeadLetter(d)
	}
	require.NoError(b, b.commit(plans...))
}

// reasons counts the letters by their reasons.
func (b *bench) reasons() map[string]int {
	b.Helper()
	n, f := map[string]int{}, store.DeadFilter{All: true, Limit: store.MaxPage}
	for {
		page := must(b.s.DeadLetters(b.ctx(), f))(b)
		for i := range page {
			n[page[i].Letter.Reason]++
		}
		if len(page) < f.Limit {
			return n
		}
		f.Before = page[len(page)-1].ID
	}
}

// dropped requires that the store has counted so many that were dropped.
func (b *bench) dropped(want int64) {
	b.Helper()
	require.Equal(b, want, must(b.lists.DroppedLetters(b.ctx()))(b))
}

// It floods a space with letters of messages without a row, behind those that must
// stay (S15): of a job, of compensations that cannot begin, and one that names the row of a job
// and on which an operator has decided, because the next decision on the row counts it (E10).
var _ = test("Letters", "the oldest stray letters are dropped, and no others", func(b *bench) {
	r := b.exhausted()
	b.write(1, collation.DeadLetter{Kind: journal.MessageStart, Reason: "undo"})
	b.write(1, collation.DeadLetter{Job: r.Job, Row: r.GUID, Kind: journal.MessageRequest, Reason: "acted", Unclaimed: true})
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann"}))
	b.write(1, collation.DeadLetter{Kind: journal.MessageRequest, Reason: "ended", Unclaimed: true})
	require.NoError(b,
		b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Response: journaltest.Success(`1`), Who: "ann"}))
	b.write(60, collation.DeadLetter{Job: r.Job, Row: r.GUID, Reason: "old", Unclaimed: true})
	b.expire(1)
	b.dropped(0) // they are within the bound

	b.write(store.MaxUnclaimed, collation.DeadLetter{Reason: "new", Unclaimed: true})
	require.True(b, must(b.s.Expire(b.ctx(), 50))(b))
	require.Equal(b, map[string]int{"runs": 1, "undo": 1, "acted": 1, "old": 11, "new": store.MaxUnclaimed}, b.reasons(), "the oldest first")
	kept := map[string]int{"runs": 1, "undo": 1, "acted": 1, "new": store.MaxUnclaimed}
	for range 2 {
		b.expire(50)
		require.Equal(b, kept, b.reasons())
	}
	b.dropped(61)
})

// It keeps of large unclaimed ones as many as the bound allows (S15).
var _ = test("Letters", "stray letters are bounded by their bytes, too", func(b *bench) {
	large := collation.DeadLetter{Reason: "large", Raw: make([]byte, 1<<20), Unclaimed: true}
	b.write(4, collation.DeadLetter{Reason: "small", Unclaimed: true})
	b.write(1, collation.DeadLetter{Reason: "own", Raw: large.Raw})
	b.write(store.MaxUnclaimedBytes>>20, large)
	b.expire(10)
	require.Equal(b, 4, b.reasons()["small"], "they have no bytes")
	b.write(1, collation.DeadLetter{Reason: "last", Message: "x", Unclaimed: true})
	b.expire(10)
	require.Equal(b, map[string]int{"own": 1, "large": store.MaxUnclaimedBytes>>20 - 1, "last": 1}, b.reasons())
	b.dropped(5)
})

// repair writes the tables of a job anew (S11), as an operator's repair does with what the journal gives.
func (b *bench) repair(r *collation.Repairing, rows []store.RowGuard) error {
	b.Helper()
	st := b.locked(b.c, store.Want{Job: r.Stored.ID}).States[r.Stored.ID]
	p, err := collation.Repaired(st, r, b.mode)
	if err != nil {
		return errors.Join(err, b.c.Rollback(b.ctx()))
	}
	c := store.Chain(&st.Job, p)
	c.Guard = &store.Guard{State: r.Stored.State, Semaphore: r.Stored.Semaphore, Head: r.Stored.Head, Rows: rows}
	return b.commit(c)
}

// repairing is the decision that writes the tables of a job anew as they are.
func (b *bench) repairing(id journal.JobID) (*collation.Repairing, []store.RowGuard) {
	b.Helper()
	s := b.tables(id)
	r := &collation.Repairing{
		Who: "suite", Reason: "drawn", Stored: s.Job, Head: s.Job.Head, Semaphore: s.Job.Semaphore, State: s.Job.State,
		Differences: []journal.Difference{{Table: "jobs", Row: id.String(), Column: "semaphore", Stored: "9", Journal: "1"}},
	}
	if r.State == journal.JobQuarantined {
		r.State = journal.JobOpen
	}
	for key, i := range s.Instances {
		r.Drop.Instances = append(r.Drop.Instances, key)
		r.Instances = append(r.Instances, collation.LedgerWrite{
			Key: key, New: true, Join: i.Ledger.Arrivals() > 0 || i.Ledger.JoinTaken(), After: i.Ledger,
			ResultSeq: i.ResultSeq, Code: i.Code, More: i.More,
		})
	}
	for g, w := range s.Waits {
		r.Drop.Waits = append(r.Drop.Waits, collation.CancelledWait{GUID: g, Count: w.Count})
		r.Waits = append(r.Waits, w)
	}
	for g, w := range s.ResolvedWaits {
		r.Drop.Resolved = append(r.Drop.Resolved, g)
		r.Resolved = append(r.Resolved, w)
	}
	var rows []store.RowGuard
	for g, row := range s.Rows {
		rows = append(rows, store.RowGuard{GUID: g, Rev: row.Rev})
		r.Rows.Update = append(r.Rows.Update, row)
	}
	return r, rows
}

// quarantined is a job that is out of service, with a request and an effect.
func (b *bench) quarantined() journal.JobID {
	b.Helper()
	r := b.asked()
	e := effectAt("pay", store.ClassGuarded, "")
	e.Key = digest(1)
	b.startEffect(b.lease(r, "w"), e)
	b.quarantine(r.Job)
	return r.Job
}

// tables reads what is stored of a job.
func (b *bench) tables(id journal.JobID) *store.Stored {
	b.Helper()
	var out *store.Stored
	require.NoError(b, b.s.Audit(b.ctx(), id, func(x *store.Stored, _ iter.Seq2[journal.Record, error]) error {
		out = x
		return nil
	}))
	out.Attachments = nil // it reads, and is not compared
	return out
}

var _ = test("Repairs", "what is dropped is inserted anew, digit for digit (S11)", func(b *bench) {
	id := b.quarantined()
	before := b.tables(id)
	require.NoError(b, b.repair(b.repairing(id)))
	after := b.tables(id)
	require.Equal(b, journal.JobOpen, after.Job.State)
	require.Equal(b, before.Job.Head.Seq+1, after.Job.Head.Seq)
	for g, row := range before.Rows {
		row.Rev++
		before.Rows[g] = row
	}
	after.Job = before.Job
	require.Equal(b, before, after)
})

var _ = test("Repairs", "digits shrink, and rows come and go, as the plan says (S11)", func(b *bench) {
	b.odd = true
	id := b.quarantined()
	r, rows := b.repairing(id)
	for i := range r.Instances {
		if x := &r.Instances[i]; x.Key == workKey {
			x.After = 1_000_000_000_000
		}
	}
	g := guid(7)
	row := r.Rows.Update[0]
	r.Rows.Update, r.Rows.Delete = nil, []journal.GUID{row.GUID}
	row.GUID = g
	r.Rows.Insert = []collation.Row{row}
	r.Waits = append(r.Waits, collation.Wait{GUID: g, Job: id, Activity: "work", DAD: ",0,0", Topic: "paid", Key: "k"})
	r.Receipts = []collation.ReceiptWrite{{
		GUID: g, New: true, After: 11_000_000_001, Verdict: journal.VerdictHandled, Seq: 2,
	}}
	r.Resolved = []collation.ResolvedWait{{
		Request: g, GUID: guid(8), PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: "1"}, Seq: 2,
	}}
	r.Drop.Effects = []collation.DroppedEffect{{Key: digest(1), State: collation.EffectStarted, Fence: 1}}
	r.Effects = []collation.Effect{{
		EffectRow: collation.EffectRow{
			Key: digest(1), Name: "pay", Class: collation.ClassGuarded, State: collation.EffectCompleted, Result: []byte(`1`),
			Fence: 1,
		},
		Request: g, Seq: 1,
	}}
	require.NoError(b, b.repair(r, rows))
	t := b.tables(id)
	require.Equal(b, collation.ActivityLedger(1_000_000_000_000), t.Instances[workKey].Ledger)
	require.Equal(b, store.StoredReceipt{Ledger: 11_000_000_001, Verdict: journal.VerdictHandled}, t.Receipts[g])
	require.Len(b, t.Rows, 1)
	require.Equal(b, row.Body, t.Rows[g].Body)
	require.Equal(b, "paid", t.Waits[g].Topic)
	require.Equal(b, r.Resolved[0], t.ResolvedWaits[guid(8)])
	require.Len(b, must(b.s.Pauses(b.ctx(), id, g))(b), 1)
	require.Equal(b, `1`, string(t.Effects[0].Result))

	b.quarantine(id)
	r, rows = b.repairing(id)
	r.Drop.Receipts, r.Waits, r.Resolved = []journal.GUID{g}, nil, nil
	require.NoError(b, b.repair(r, rows))
	t = b.tables(id)
	require.Empty(b, t.Waits)
	require.Empty(b, t.ResolvedWaits)
	require.Empty(b, must(b.s.Pauses(b.ctx(), id, g))(b))
	require.NotContains(b, t.Receipts, g)
})

var _ = test("Repairs", "a row, a wait or an effect that has changed is named (S11)", func(b *bench) {
	id := b.quarantined()
	for _, spoil := range []func(r *collation.Repairing, rows []store.RowGuard){
		func(_ *collation.Repairing, rows []store.RowGuard) { rows[0].Rev++ },
		func(r *collation.Repairing, _ []store.RowGuard) {
			r.Drop.Waits = append(r.Drop.Waits, collation.CancelledWait{GUID: guid(9)})
		},
		func(r *collation.Repairing, _ []store.RowGuard) {
			r.Drop.Effects = []collation.DroppedEffect{{Key: digest(1), State: collation.EffectCompleted, Fence: 1}}
		},
	} {
		before := b.tables(id)
		r, rows := b.repairing(id)
		spoil(r, rows)
		require.ErrorIs(b, b.repair(r, rows), store.ErrLost)
		require.Equal(b, before, b.tables(id))
	}
})

var _ = test("Repairs", "an open job, and one that has moved on, are not written (C3)", func(b *bench) {
	id := b.jobs(1)[0]
	require.ErrorIs(b, b.repair(b.repairing(id)), collation.ErrAction)
	other := b.quarantined()
	r, rows := b.repairing(other)
	require.NoError(b, b.repair(b.repairing(other)))
	require.ErrorIs(b, b.repair(r, rows), store.ErrStale)
})
