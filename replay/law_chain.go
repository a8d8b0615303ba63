package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// link checks a record's place and hash (V1, V2). It reports whether the record is later than
// those read of its chain.
func (a *auditor) link(rec journal.Record) bool {
	if !a.cursor.begun || rec.Chain != a.cursor.chain {
		a.begin(rec.Chain)
	}
	c := &a.cursor
	if rec.Seq <= c.seq {
		a.report(V1, rec.Chain, rec.Seq, "entry %d again, after entry %d", rec.Seq, c.seq)
		return false
	}
	if rec.Seq > c.seq+1 {
		a.report(V1, rec.Chain, rec.Seq, "entry %d follows entry %d: %d missing", rec.Seq, c.seq, rec.Seq-c.seq-1)
		why := fmt.Sprintf("entries are missing before entry %d", rec.Seq)
		a.note(V2, "the link to what is missing: "+why)
		a.cannotSee(rec.Chain, why)
	} else if want := journal.Next(c.hash, rec.Body); want != rec.Hash {
		a.report(V2, rec.Chain, rec.Seq, "the hash of entry %d is %s, its body and predecessor give %s", rec.Seq, rec.Hash, want)
	}
	// Continuing from the stored hash makes one broken entry one violation.
	c.seq, c.hash = rec.Seq, rec.Hash
	if b, ok := a.bounds[rec.Chain]; ok && b.head.Seq == rec.Seq && b.head.Hash != rec.Hash {
		a.report(V3, rec.Chain, rec.Seq, "entry %d of the main chain binds the head %s here, the hash is %s", b.seq, b.head.Hash, rec.Hash)
	}
	return true
}

// begin moves to another chain.
func (a *auditor) begin(chain journal.GUID) {
	a.endChain()
	if a.seen[chain] || (a.cursor.begun && chain.IsZero()) {
		a.report(V1, chain, 0, "the entries of chain %s do not stand together, the main chain first", chain)
	}
	a.seen[chain] = true
	a.cursor = cursor{
		chain: chain, begun: true,
		hash: journal.Genesis(a.h.Space, a.h.Job, a.h.Generation, chain),
	}
}

// endChain compares the chain that ends here with its known heads (V3).
func (a *auditor) endChain() {
	c := a.cursor
	if !c.begun {
		return
	}
	if c.chain.IsZero() {
		a.headReached(c)
		return
	}
	if b, ok := a.bounds[c.chain]; ok && b.head.Seq > c.seq {
		a.report(V3, c.chain, c.seq, "entry %d of the main chain binds %d entries of this chain, %d are here", b.seq, b.head.Seq, c.seq)
		a.effectsUnseen = "entries of effects are missing"
	}
	if a.stored == nil {
		return
	}
	row, ok := a.stored.Rows[c.chain]
	if ok && row.Effects != (journal.Head{Seq: c.seq, Hash: c.hash}) {
		a.report(V3, c.chain, c.seq, "the chain ends at entry %d with %s, the request's row says entry %d with %s",
			c.seq, c.hash, row.Effects.Seq, row.Effects.Hash)
		a.effectsUnseen = "the chain of effects does not end where its row says"
	}
}

func (a *auditor) headReached(c cursor) {
	switch head := a.h.Head; {
	case head == journal.Head{}:
		a.note(V3, "no head is known to compare with")
	case head.Seq != c.seq:
		a.report(V3, c.chain, c.seq, "the chain ends at entry %d, the stored head says entry %d", c.seq, head.Seq)
		a.short = fmt.Sprintf("the chain ends at entry %d, the tables are those of entry %d", c.seq, head.Seq)
	case head.Hash != c.hash:
		a.differs(V3, c.seq, of(TableJobs, a.h.Job.String(), "head_hash", head.Hash, c.hash), "the last hash is %s, the stored head says %s", c.hash, head.Hash)
	}
}

// identity checks that a record belongs to the job (V1). The hash of an entry covers its space,
// job, generation, chain and seq, and all entries before it (J9), so V2 checks those. The first
// entry also names them.
func (a *auditor) identity(rec journal.Record, e *journal.Entry) bool {
	h := &a.h
	switch {
	case rec.Job != h.Job && !rec.Job.IsZero():
		a.report(V1, rec.Chain, rec.Seq, "the record is of job %s, not %s", rec.Job, h.Job)
		return false
	case e.Kind != journal.KindCreated:
		return true
	case e.Space != h.Space:
		a.at(V1, e, "the entry says space %s, it stands in %s", e.Space, h.Space)
		return false
	case e.Generation != h.Generation:
		a.at(V1, e, "the entry says generation %d, it stands in %d", e.Generation, h.Generation)
		return false
	}
	a.created(e)
	return true
}

// created checks what the first entry says of the whole job (V1), and that the job's id is that
// of its key, or of a child of its parent (V11).
func (a *auditor) created(e *journal.Entry) {
	if a.h.Key != "" && e.Key != a.h.Key {
		a.at(V1, e, "the job's key is %q, the stored one %q", e.Key, a.h.Key)
	}
	if e.Flow == nil {
		a.at(V1, e, "the first entry names no flow")
	}
	if e.Flow != nil && !a.h.Flow.IsZero() && e.Flow.Digest != a.h.Flow {
		a.at(V1, e, "the job's flow %s %s has digest %s, the stored one %s", e.Flow.Name, e.Flow.Version, e.Flow.Digest, a.h.Flow)
	}
	a.bornLaw(e)
	if p := e.Parent; p != nil {
		a.bornOf(e, p)
	} else if id := journal.DeriveJob(e.Space, e.Key, e.Generation); id != e.Job {
		a.at(V11, e, "generation %d of key %q has job id %s, not %s", e.Generation, e.Key, id, e.Job)
	}
}

// bornOf checks that the job's id is that of a child of its parent (V11): of an await in the
// given turn; of a durable function, under a name that only the parent's journal tells; or of
// the job that runs the function's compensations, for which nobody waits.
func (a *auditor) bornOf(e *journal.Entry, p *journal.Parent) {
	if p.Awaited != (p.Depth > 0) || p.Depth < 0 || p.Depth > journal.MaxDepth {
		a.at(V11, e, "%d jobs wait for the job: 1 to %d may, and 0 if nobody waits", p.Depth, journal.MaxDepth)
	}
	id := journal.DeriveChild(p.Leg1, p.Turn)
	switch {
	case p.Turn == 0 && p.Awaited:
		a.note(V11, "the id of the job derives from the name under which a function started it, which its parent's journal tells")
		return
	case p.Turn == 0:
		if id = journal.DeriveUndo(p.Leg1); e.Flow != nil && e.Flow.Name != flow.UndoName {
			a.at(V11, e, "the job of flow %s is for the compensations of request %s", e.Flow.Name, p.Leg1)
		}
	}
	if id != e.Job {
		a.at(V11, e, "the child of turn %d of %s has job id %s, not %s", p.Turn, p.Leg1, id, e.Job)
	}
}

var (
	knownMessages = set(journal.MessageStart, journal.MessageLeg1, journal.MessageRequest, journal.MessageResponse,
		journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle,
		journal.MessageSignal, journal.MessageInterrupt, journal.MessageReceipt)
	knownResponses = set(journal.ResponseTerminal, journal.ResponseFailedAttempt, journal.ResponseSuspended,
		journal.ResponseParked, journal.ResponsePass, journal.ResponseWake)
	knownPauses  = set(journal.PauseSleep, journal.PauseSignal, journal.PauseChild)
	knownWakers  = set("", journal.BySignal, journal.ByTimer)
	knownHolds   = set("", heldStuck, heldParked, heldParallel)
	knownEnds    = set(journal.JobCompleted, journal.JobFailed, journal.JobInterrupted)
	knownClasses = set("pure", "tx", "idempotent", "guarded", ClassUndo)
)

func set[T comparable](list ...T) map[T]bool {
	m := make(map[T]bool, len(list))
	for _, x := range list {
		m[x] = true
	}
	return m
}

// vocabulary checks that the entry uses only words of its format version (V16). Decode has
// checked kind, version and fields.
func (a *auditor) vocabulary(e *journal.Entry) {
	last := marks(0)
	for _, m := range e.Marks {
		x := markOf[m]
		if x <= last {
			a.at(V16, e, "the marks %v are not in the order in which a message passes them", e.Marks)
		}
		last = x
	}
	for i := range e.Dispatched {
		if k := e.Dispatched[i].Kind; !knownMessages[k] {
			a.at(V16, e, "unknown kind of message %q", k)
		}
	}
	for i := range e.Updated {
		if k := e.Updated[i].Kind; !knownMessages[k] {
			a.at(V16, e, "unknown kind of message %q", k)
		}
		if why := e.Updated[i].Held; !knownHolds[why] {
			a.at(V16, e, "unknown reason for being held %q", why)
		}
	}
	if r := e.Response; r != nil {
		a.responseWords(e, r)
	}
	if r := e.Result; r != nil && !knownWakers[r.By] {
		a.at(V16, e, "unknown waker %q", r.By)
	}
	if c := e.Close; c != nil && !knownEnds[c.State] {
		a.at(V16, e, "unknown end of a job %q", c.State)
	}
	if f := e.Effect; f != nil && !knownClasses[f.Class] {
		a.at(V16, e, "unknown class of effect %q", f.Class)
	}
}

func (a *auditor) responseWords(e *journal.Entry, r *journal.Response) {
	if !knownResponses[r.Kind] {
		a.at(V16, e, "unknown kind of response %q", r.Kind)
	}
	if !knownWakers[r.By] {
		a.at(V16, e, "unknown waker %q", r.By)
	}
	for i := range r.Pauses {
		if k := r.Pauses[i].Kind; !knownPauses[k] {
			a.at(V16, e, "unknown kind of pause %q", k)
		}
	}
}
