package journaltest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// fold rebuilds a job from its entries.
type fold struct {
	b         *bench
	s         *store.Stored
	heads     map[journal.GUID]journal.Head
	instances map[collation.InstanceKey]collation.ActivityLedger
	receipts  map[journal.GUID]store.StoredReceipt
	semaphore int64
	open      map[journal.GUID]bool // dispatched and not ended
	sent      map[journal.GUID]bool // dispatched to other jobs: they end them
	received  map[journal.GUID]bool // accepted from others
	waits     map[journal.GUID]journal.Wait
	elements  map[collation.InstanceKey]int // open ones
	closes    int
	effects   map[journal.Digest]store.EffectState
	wakes     map[journal.GUID]*store.Pause  // accepted, by their message
	woken     map[journal.GUID][]store.Pause // by their request, in their order
}

func newFold(b *bench, s *store.Stored) *fold {
	return &fold{
		b: b, s: s, heads: map[journal.GUID]journal.Head{},
		instances: map[collation.InstanceKey]collation.ActivityLedger{}, receipts: map[journal.GUID]store.StoredReceipt{},
		open: map[journal.GUID]bool{}, sent: map[journal.GUID]bool{}, received: map[journal.GUID]bool{}, waits: map[journal.GUID]journal.Wait{},
		elements: map[collation.InstanceKey]int{}, effects: map[journal.Digest]store.EffectState{},
		wakes: map[journal.GUID]*store.Pause{}, woken: map[journal.GUID][]store.Pause{},
	}
}

// record checks one entry against the chain it continues and folds it.
func (f *fold) record(r *journal.Record) {
	f.b.Helper()
	head, begun := f.heads[r.Chain]
	if !begun {
		head.Hash = journal.Genesis(f.s.Job.Space, f.s.Job.ID, f.s.Job.Generation, r.Chain)
	}
	require.Equal(f.b, f.s.Job.ID, r.Job)
	require.Equal(f.b, head.Seq+1, r.Seq, "chain %s has a gap", r.Chain)
	require.Equal(f.b, journal.Next(head.Hash, r.Body), r.Hash, "hash of entry %d of chain %s", r.Seq, r.Chain)
	f.heads[r.Chain] = journal.Head{Seq: r.Seq, Hash: r.Hash}
	e, err := journal.Decode(r.Body)
	require.NoError(f.b, err)
	require.Equal(f.b, r.Seq, e.Seq)
	require.Equal(f.b, r.Chain, e.Chain)
	require.Equal(f.b, f.s.Job.ID, e.Job)
	require.Equal(f.b, f.s.Job.Generation, e.Generation)
	require.Equal(f.b, f.s.Job.Space, e.Space)
	if r.Chain == journal.MainChain {
		f.entry(e)
		return
	}
	switch e.Kind {
	case journal.KindEffectStarted:
		f.effects[e.Effect.Key] = store.EffectStarted
	case journal.KindEffectCompleted:
		f.effects[e.Effect.Key] = store.EffectCompleted
	case journal.KindEffectFailed:
		f.effects[e.Effect.Key] = store.EffectNotDone
	default:
		require.Failf(f.b, "wrong kind on a chain of effects", "%s", e.Kind)
	}
}

// entry folds an entry of the main chain.
func (f *fold) entry(e *journal.Entry) {
	for _, m := range e.Ledgers {
		key := collation.InstanceKey{Activity: m.Activity, DAD: collation.DAD(m.DAD)}
		require.Equal(f.b, f.instances[key], collation.ActivityLedger(m.Before), "entry %d, %v", e.Seq, key)
		f.instances[key] = collation.ActivityLedger(m.After)
	}
	for _, m := range e.Receipts {
		old, known := f.receipts[m.GUID]
		require.Equal(f.b, !known, m.New, "entry %d, receipt %s", e.Seq, m.GUID)
		require.Equal(f.b, old.Ledger, collation.GUIDLedger(m.Before), "entry %d, receipt %s", e.Seq, m.GUID)
		f.receipts[m.GUID] = store.StoredReceipt{Ledger: collation.GUIDLedger(m.After), Verdict: m.Verdict}
	}
	if e.Semaphore != nil {
		require.Equal(f.b, f.semaphore, e.Semaphore.Before, "entry %d", e.Seq)
		f.semaphore = e.Semaphore.After
	}
	if slices.Contains(e.Marks, journal.MarkClosed) {
		f.closes++
	}
	for _, w := range e.Waits {
		f.waits[w.GUID] = w
	}
	f.elementsOf(e)
	for _, d := range e.Dispatched {
		if d.Job.IsZero() {
			f.open[d.GUID] = true
		} else {
			f.sent[d.GUID] = true
		}
	}
	f.receive(e)
	f.wake(e)
	for _, gone := range [][]journal.GUID{e.Ended, e.Disarmed, e.Withdrawn, e.Folded} {
		for _, g := range gone {
			f.ends(e, g)
		}
	}
}

// elementsOf folds what an entry says of `each`.
func (f *fold) elementsOf(e *journal.Entry) {
	if e.Open != nil {
		key := collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)}
		require.Equal(f.b, f.elements[key], e.Open.Before, "entry %d, open elements of %v", e.Seq, key)
		if f.elements[key] = e.Open.After; e.Open.After == 0 {
			delete(f.elements, key)
		}
	}
	if e.Elements != nil {
		for i := range e.Elements.Count {
			f.open[collation.RequestGUID(e.GUID, i)] = true
		}
	}
}

// ends folds the end of a row or a wait: one that the job dispatched or
// registered, or a message that others sent to it.
func (f *fold) ends(e *journal.Entry, g journal.GUID) {
	_, waited := f.waits[g]
	alone := g == e.GUID && (e.Kind == journal.KindInterrupt || e.Kind == journal.KindStale)
	known := f.open[g] || f.sent[g] || f.received[g] || waited
	require.True(f.b, known || alone || f.repeats(), "entry %d ends %s, which is not open", e.Seq, g)
	delete(f.open, g)
	delete(f.sent, g)
	delete(f.waits, g)
}

// receive folds the acceptance of a message that others sent: a child's outcome,
// or a wake-up by a signal, whose wait is gone with it unless it repeats.
func (f *fold) receive(e *journal.Entry) {
	x := e.Response
	if x == nil || x.Child.IsZero() && x.By != journal.BySignal {
		return
	}
	f.received[e.GUID] = true
	for g := range f.waits {
		if g == e.GUID || collation.SignalledGUID(g, x.Signal) == e.GUID && x.Kind == journal.ResponseTerminal {
			delete(f.waits, g)
		}
	}
}

// wake folds what a durable function waited for: its step 1 records what the
// entry that accepted it says (E12).
func (f *fold) wake(e *journal.Entry) {
	if x := e.Response; x != nil && x.Of != nil {
		f.wakes[e.GUID] = &store.Pause{PauseRef: *x.Of, Seq: e.Seq, Response: x}
	}
	if p := f.wakes[e.GUID]; p != nil && slices.Contains(e.Marks, journal.MarkWork) {
		f.woken[p.Response.Request] = append(f.woken[p.Response.Request], *p)
	}
}

// comparePauses holds what functions find to the fold.
func (f *fold) comparePauses() {
	f.b.Helper()
	if f.s.Job.State == journal.JobQuarantined {
		return
	}
	for request, want := range f.woken {
		require.Equal(f.b, want, f.b.came(f.s.Job.ID, request), "what came for %s", request)
	}
}

// repeats reports whether a wait repeats: a close takes back wake-ups of it whose
// signals the journal does not know.
func (f *fold) repeats() bool {
	for _, w := range f.waits {
		if w.Repeat {
			return true
		}
	}
	return false
}

// compare holds the tables to the fold.
func (f *fold) compare() {
	f.b.Helper()
	require.Equal(f.b, f.heads[journal.MainChain], f.s.Job.Head)
	require.Equal(f.b, f.instances, f.s.Instances)
	require.Equal(f.b, f.receipts, f.s.Receipts)
	require.Equal(f.b, f.semaphore, f.s.Job.Semaphore)
	f.compareRows()
	f.comparePauses()
	require.Equal(f.b, f.elements, f.s.Open)
	require.Equal(f.b, f.s.Job.State.Closed(), f.closes == 1, "state %s with %d closes", f.s.Job.State, f.closes)
	require.Len(f.b, f.s.Effects, len(f.effects))
	for _, e := range f.s.Effects {
		require.Equal(f.b, f.effects[e.Key], e.State, "effect %s", e.Name)
	}
	require.Equal(f.b, f.s.Job.Flow.Digest, f.s.FlowDigest)
}

// compareRows holds rows and waits to the fold: a wait that is not there has a
// wake-up in its place, until that is handled (1.11).
func (f *fold) compareRows() {
	f.b.Helper()
	woken := map[journal.GUID]bool{}
	for g, row := range f.s.Rows {
		require.Equal(f.b, f.heads[g], row.Effects, "head of the effects of %s (J8)", g)
		switch {
		case f.open[g]:
			delete(f.open, g)
		case f.received[g]: // its last step is still to come
		case row.Kind == journal.MessageWakeUp:
			x := f.b.woken(&row)
			w, waited := f.waits[g]
			for base, r := range f.waits {
				if r.Repeat && collation.SignalledGUID(base, x.Signal) == g {
					w, waited = r, true
				}
			}
			require.True(f.b, waited, "wake-up %s has no wait", g)
			if x.Kind != journal.ResponsePass {
				woken[w.GUID] = true
			}
		default:
			kinds := []journal.MessageKind{journal.MessageOutcome, journal.MessageInterrupt}
			require.Contains(f.b, kinds, row.Kind, "row %s has no origin", g)
		}
	}
	require.Empty(f.b, f.open, "dispatched and not ended, but gone")
	for g, w := range f.waits {
		stored, open := f.s.Waits[g]
		require.NotEqual(f.b, open, woken[g], "wait %s is open, or has been closed by a signal", g)
		if open {
			require.Equal(f.b, w, journal.Wait{GUID: g, Topic: stored.Topic, Key: stored.Key, Repeat: stored.Repeat})
		}
	}
	for g := range f.s.Waits {
		require.Contains(f.b, f.waits, g)
	}
}
