package collation

import (
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Chain is the effect chain of one request (J8). It is locked by the request's dispatch row or,
// when that is gone, by the job. Start and Finish read the row, the job's state and one effect.
// They decide whether the run may write, whether it takes the lease, and what becomes of the
// effect. They write the effect, at most one entry of the chain, and some columns of the row.
// Both update the Chain, so that the next write of the same transaction sees the change. A
// refused call changes nothing.
type Chain struct {
	// Job needs ID, Space, Generation, State and Trace. An empty State means that there is no
	// job, or only a tombstone.
	Job     Job
	Request journal.GUID
	Row     *Row // nil: gone
	Head    journal.Head
	Now     Micros
	// Doubt says that the database may have lost commits of the job (S13): a Guarded effect without
	// a recorded start may have been made.
	Doubt   bool
	Effects map[journal.Digest]*Effect // the effects that were asked for and exist
	// Past are the effects of earlier generations that were asked for.
	Past map[journal.Digest]*PastEffect
}

// ChainWrite is what a plan writes on the chain of a request.
type ChainWrite struct {
	Request journal.GUID
	Entry   *journal.Entry   // nil: the chain stays as it is
	Body    []byte           // of Entry
	Hash    journal.Digest   // of Entry
	Effect  Effect           // as the plan leaves it
	State   journal.JobState // of the job: a row's change holds only while it is the same (W6)
	// Row is the request's row as the plan leaves it. Only the columns that SetEffects sets are
	// written. nil: the row is gone, or the plan writes it anyway.
	Row     *Row
	Resolve bool // the row was parked for the effect: its open dead letter ends
	// Completed says that an operator decided on an effect that already has a result. For every
	// other writer the stored effect must have none.
	Completed bool
}

// Begins says that the effect is a new one, whose first entry is that of the write: it is not stored
// yet. Otherwise it is.
func (w *ChainWrite) Begins() bool {
	return w.Entry != nil && w.Entry.Seq == w.Effect.Seq && w.Request == w.Effect.Request
}

// Effected is the result of a decision on an effect: the effect as it stands now.
type Effected struct {
	EffectRow
	Taken bool  // an unfinished start was taken over (E4), or one whose record may be lost (S13)
	Plan  *Plan // nil: nothing is to be written
}

// Start decides on the start of an effect. It takes over an unfinished one (E4), and one that
// an earlier generation of the job has. Effects of class pure and tx get no entry before their
// outcome. A run without a lease gets one. In a job that is in doubt, the first start of a Guarded
// effect counts as taken over (S13). Errors: ErrStale, ErrLeased, ErrBehind.
func (c *Chain) Start(l Lease, e journal.Effect, mode Mode) (Effected, error) {
	fence, current := c.fence(&l)
	f := c.Effects[e.Key]
	switch {
	case c.behind(&l):
		return Effected{}, ErrBehind
	case !current || l.Session == 0:
		return Effected{}, ErrStale
	case f != nil && (f.State != EffectStarted || f.Class == ClassUndo || f.Fence >= fence):
		own := f.Fence == fence && f.Holder == l.Holder // the answer to the start was lost
		return Effected{EffectRow: f.EffectRow, Taken: own && (c.doubts(f) || c.inherits(f))}, nil
	case f == nil && c.Past[e.Key] != nil:
		return c.takeOver(c.Past[e.Key], l, e, mode)
	case e.Class == ClassPure || e.Class == ClassTx:
		return Effected{EffectRow: EffectRow{Key: e.Key, Class: e.Class, State: EffectStarted, Fence: l.Fence}}, nil
	}
	row := *c.Row
	row.hold(&l)
	w := &ChainWrite{Request: c.Request, Row: &row}
	out := Effected{Taken: f != nil}
	if f != nil { // the chain has its start already, only its holder changes
		w.Effect = *f
	} else {
		w.Effect = c.first(&e)
		w.Effect.State = EffectStarted
		row.Undo = row.Undo || e.Class == ClassUndo
		e.Turn, e.Fence, e.Late = l.Turn, l.Fence, false
		c.record(w, journal.KindEffectStarted, l.Holder, &e, mode)
	}
	f = &w.Effect
	f.Turn, f.Fence, f.Holder, f.Until = l.Turn, l.Fence, l.Holder, mode.CallEnds(f.Class, l.Timeout, c.Now)
	f.Live = f.Request == c.Request
	out.Taken = out.Taken || c.doubts(f)
	out.Plan, out.EffectRow = c.move(w), f.EffectRow
	out.Plan.Session = l.Session
	return out, nil
}

// Chain is the effect chain of a request whose row is in the state, without the effects on it.
func (s *State) Chain(row *Row) *Chain {
	own := *row
	return &Chain{
		Job: s.Job, Request: row.GUID, Row: &own, Head: row.Effects, Now: s.Now, Effects: map[journal.Digest]*Effect{},
	}
}

// Beside leaves the change of the request's row to another plan of the same transaction, which writes
// the row anyway: rows get what the effect changes in it.
func (c *Chain) Beside(p *Plan, rows ...*Row) {
	for _, row := range rows {
		row.SetEffects(p.Chain.Row)
	}
	c.Row.Rev--
	p.Chain.Row = nil
}

// CallEnds is when a call that began at start has certainly ended (E4). timeout is that of its
// activity; 0: none. Never: unknown.
func (m Mode) CallEnds(class string, timeout time.Duration, start Micros) Micros {
	switch {
	case class == ClassUndo:
	case timeout > 0:
		return start + Micros(timeout.Microseconds())
	case class == ClassGuarded && m.InFlight > 0: // a verifier is not asked before that (3.3)
		return start + m.InFlight
	}
	return Never
}

// behind says that the run has seen an outcome that is not recorded, or not as the run's.
func (c *Chain) behind(l *Lease) bool {
	if l.After.IsZero() {
		return false
	}
	f := c.Effects[l.After]
	return f == nil || f.State != EffectCompleted || f.Holder != l.Holder
}

// doubts says that an effect may have been made by a run of which nothing is recorded: its
// verifier or a person says whether it was. What was found not done before is in no doubt.
func (c *Chain) doubts(f *Effect) bool {
	return c.Doubt && f.Class == ClassGuarded && f.State == EffectStarted && f.N == 0
}

// inherits says that the effect was begun by an earlier generation, and taken over.
func (c *Chain) inherits(f *Effect) bool {
	p := c.Past[f.Key]
	return p != nil && p.State == EffectStarted && f.State == EffectStarted && f.Class != ClassUndo
}

// Finish decides on the outcome of an effect (E5): completed, or not done. Results are written
// once: if there is one, it is returned. The end of a started effect is recorded whichever run
// reports it, marked late if that run does not hold the request (J8). The exception is NotDone
// from a run whose effect another has taken over to call again. An effect without a start is
// recorded only for the run that holds the request, and only in class pure or tx. A tx effect
// commits with the user's rows, so only that run may record it. A parked row is
// released (E4), and the row's runs count from 0 (E9). Errors: ErrStale, ErrRejected, ErrBehind.
func (c *Chain) Finish(l Lease, e journal.Effect, notDone bool, mode Mode) (Effected, error) {
	_, current := c.fence(&l)
	f := c.Effects[e.Key]
	switch {
	case c.behind(&l):
		return Effected{}, ErrBehind
	case len(e.Result) > MaxResult:
		return Effected{}, fmt.Errorf("%w: that of %q has %d bytes, the limit is %d", ErrRejected, e.Name, len(e.Result), MaxResult)
	case c.Job.State == "" || c.Job.State == journal.JobExpired, e.Class == ClassTx && !current,
		f == nil && !(current && (e.Class == ClassPure || e.Class == ClassTx)),
		f != nil && notDone && !current && f.Again(l.Fence):
		return Effected{}, ErrStale
	case f != nil && f.State != EffectStarted:
		return Effected{EffectRow: f.EffectRow}, nil
	}
	w, takes := &ChainWrite{Request: c.Request}, int64(0)
	if c.Row != nil {
		row := *c.Row
		w.Row = &row
		if current && l.Fresh && l.Session != 0 {
			if row.Holder == "" {
				takes = l.Session
			}
			row.hold(&l)
		}
		row.Runs = 0
		if row.Kind == journal.MessageRequest && row.Held == HeldParked {
			row.Held, row.Dead, row.NextAt, row.TurnSent = "", false, c.Now, 0
			w.Resolve = true
		}
	}
	if f != nil { // the facts of its start stay
		w.Effect = *f
		e.Name, e.Class, e.N, e.Position = f.Name, f.Class, f.N, f.Position
	} else {
		w.Effect = c.first(&e)
	}
	kind, state := journal.KindEffectCompleted, EffectCompleted
	if notDone {
		kind, state = journal.KindEffectFailed, EffectNotDone
	}
	e.Turn, e.Fence, e.Late = l.Turn, l.Fence, !current
	c.record(w, kind, l.Holder, &e, mode)
	f = &w.Effect
	f.State, f.Result, f.Error, f.Fence, f.Holder = state, slices.Clone(e.Result), e.Error, l.Fence, l.Holder
	f.Live, f.Turn, f.Until = false, l.Turn, Never
	out := Effected{Plan: c.move(w), EffectRow: f.EffectRow}
	out.Plan.Session = takes
	return out, nil
}

// first makes an effect whose first entry is the next one of the chain.
func (c *Chain) first(e *journal.Effect) Effect {
	return Effect{Request: c.Request, Seq: c.Head.Seq + 1, EffectRow: EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Position: e.Position,
	}}
}

// fence returns the fence under which the run writes, and whether the run has the request or
// may take it: only then may it begin an effect (E9).
func (c *Chain) fence(l *Lease) (int64, bool) {
	x := c.Row
	switch {
	case x == nil || c.Job.State != journal.JobOpen || !x.runs(l.Turn):
	case x.Fence == l.Fence && x.Holder == "" && l.Fresh:
		return l.Fence + 1, true // hold raises the row's fence to it
	case x.Fence == l.Fence && (x.Holder == "" || x.Holder == l.Holder):
		return l.Fence, true
	case x.Fence == l.Fence+1 && x.Holder == l.Holder && l.Fresh:
		return x.Fence, true // taken by a call whose answer is still unknown
	}
	return l.Fence, false
}

// runs reports whether the row is a request that may run in the turn.
func (r *Row) runs(turn int) bool {
	return r.Kind == journal.MessageRequest && r.Held == "" && r.Turn == turn
}

// hold gives the lease of the row to the run, if nobody has it, and sets the lease's fence.
func (r *Row) hold(l *Lease) {
	if r.Holder == "" {
		if l.Fresh {
			r.Fence++
			r.Runs++
		}
		r.heldBy(l.Holder, l.Session)
	}
	l.Fence = r.Fence
}

// heldBy gives the row to a run. The request is not sent to others before the run lets go or
// its session ends (W8, P21).
func (r *Row) heldBy(holder string, session int64) {
	r.Holder, r.Session, r.NextAt = holder, session, Never
}

// letGo ends the hold of a run on its row.
func (r *Row) letGo() { r.Holder, r.Session = "", 0 }

// HandOver gives a row that is about to be written to a run in the process that writes it (W7).
// The run has the lease from the start. No message of this turn is in a queue, so a sweeper
// that finds the row due again sends it without a look (T2).
func (r *Row) HandOver(holder string, session int64) {
	r.heldBy(holder, session)
	r.TurnSent = 0
	r.Fence++
	r.Runs++
}

// SetEffects copies from another row the columns that effects change.
func (r *Row) SetEffects(from *Row) {
	r.NextAt, r.Held, r.Dead, r.TurnSent, r.Runs = from.NextAt, from.Held, from.Dead, from.TurnSent, from.Runs
	r.Holder, r.Session, r.Fence, r.Effects, r.Undo = from.Holder, from.Session, from.Fence, from.Effects, from.Undo
}

// record makes the write's entry, the next one of the chain (J9). The first entry of an effect
// names its activity and address; the one that releases a parked row tells of the row.
func (c *Chain) record(w *ChainWrite, kind journal.Kind, writer string, e *journal.Effect, mode Mode) {
	x := &journal.Entry{
		Space: c.Job.Space, Job: c.Job.ID, Generation: c.Job.Generation, Chain: c.Request, Seq: c.Head.Seq + 1,
		Kind: kind,
		GUID: c.Request, Effect: e, Writer: writer, Build: mode.Build, Time: int64(c.Now), Trace: c.Job.Trace,
	}
	w.Entry = x
	if w.Row != nil && w.Begins() {
		x.Activity, x.DAD = w.Row.Activity, string(w.Row.DAD)
	}
	if w.Resolve {
		x.Updated = []journal.Updated{w.Row.updated()}
	}
	previous := c.Head.Hash
	if c.Head.Seq == 0 {
		previous = journal.Genesis(x.Space, x.Job, x.Generation, x.Chain)
	}
	w.Body = journal.Encode(x)
	w.Hash = journal.Next(previous, w.Body)
	if w.Row != nil {
		w.Row.Effects = journal.Head{Seq: x.Seq, Hash: w.Hash}
	}
}

// move updates the chain by the write, and returns the plan.
func (c *Chain) move(w *ChainWrite) *Plan {
	w.State = c.Job.State
	if c.Row = w.Row; c.Row != nil {
		c.Row.Rev++
	}
	if w.Entry != nil {
		c.Head = journal.Head{Seq: w.Entry.Seq, Hash: w.Hash}
	}
	f := w.Effect
	c.Effects[f.Key] = &f
	return &Plan{Job: c.Job.ID, Message: c.Request, Outcome: Handled, Done: true, Chain: w}
}

// Exhaust holds a request that ran too often, with a dead letter (E9, E10). An engine decides it,
// on a due row whose runs are over MaxRuns: a worker does not write the main chain. It reads the job,
// the request's row and its instance. ErrStale: the turn is over. ErrLeased: an effect has
// ended meanwhile, so the request may run again.
func Exhaust(s *State, request journal.GUID, turn int, mode Mode) (*Plan, *Need, error) {
	x := s.Rows[request]
	switch {
	case s.Job.State != journal.JobOpen || x == nil || !x.runs(turn):
		return nil, nil, ErrStale
	case x.Runs < MaxRuns:
		return nil, nil, ErrLeased
	}
	key := InstanceKey{x.Activity, x.DAD}
	if _, loaded := s.Instances[key]; !loaded {
		return nil, &Need{Instances: []InstanceKey{key}}, nil
	}
	w := newWriter(s, &Message{Kind: x.Kind, Job: s.Job.ID, GUID: request, Row: request}, mode)
	w.key, w.p.Outcome, w.p.Done = key, Stuck, true
	w.entry(journal.KindDeadLetter)
	held := *x // the due time is kept (C16)
	held.letGo()
	w.hold(&held, HeldStuck, ReasonRuns, fmt.Sprintf("the request ran %d times without an answer: its handler may kill its process", min(x.Runs, MaxRuns)))
	w.change(held, true)
	return w.seal(), nil, nil
}

// ReasonRuns is the reason of the dead letter of a request that ran too often.
const ReasonRuns = "runs"
