package replay

import (
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Stored is what the tables hold of a job besides its entries, read in one snapshot with them.
// An export has none.
type Stored struct {
	State     journal.JobState
	Semaphore int64
	ClosedAt  int64 // seq of the entry that closed the job; 0: none
	// seq of the entry with which its completion tasks were done; 0: none
	TasksAt   int64
	Instances map[collation.InstanceKey]collation.ActivityLedger // those with digits
	Open      map[collation.InstanceKey]int                      // elements that have not ended, where there are any
	Receipts  map[journal.GUID]StoredReceipt
	Rows      map[journal.GUID]collation.Row
	Waits     map[journal.GUID]collation.Wait
	Effects   []StoredEffect
	// ResolvedWaits are the rows of resolved waits, by the message that brought each; nil: they
	// were not read.
	ResolvedWaits map[journal.GUID]collation.ResolvedWait
	// From is what the job resumes; nil: nothing. Next is the job that resumes it.
	From *journal.From
	Next journal.JobID
	Flow journal.FlowRef // as the job's row has it
	// KnownExpiredAt is the moment by which the job was a tombstone; 0: that is not known, or it is none.
	KnownExpiredAt collation.Micros
}

// StoredReceipt is a receipt's row.
type StoredReceipt struct {
	Ledger  collation.GUIDLedger
	Verdict journal.Verdict
}

// StoredEffect is an effect's row; Result is its ResultDigest.
type StoredEffect struct {
	Key      journal.Digest
	Name     string
	Class    string
	N        int
	State    EffectState
	Result   journal.Digest
	Position string
}

// Verify reads the entries of one job, the main chain first, then the others, each by seq, and
// checks all that this input can prove. stored is nil if there are no tables to compare, attachments
// if there are neither outputs nor definitions. An error is one of reading, and nothing was
// decided then. Faults of the entries are in the report.
func Verify(
	h Header, stored *Stored, attachments *Attachments, entries iter.Seq2[journal.Record, error],
) (*Report, error) {
	a := newAuditor(h, stored)
	if attachments != nil {
		a.attachments = attachments
	}
	for rec, err := range entries {
		if err != nil {
			return nil, fmt.Errorf("read the entries of job %s after entry %d: %w", h.Job, a.cursor.seq, err)
		}
		a.entry(rec)
	}
	return a.finish(), nil
}

// auditor holds the state before the next entry and what was found so far.
type auditor struct {
	h           Header
	stored      *Stored
	attachments *Attachments
	job         *Job
	twin        *Job // the second replay (V14)
	cursor      cursor
	// blind says why the laws no longer look at the main chain: an entry was missing or could
	// not be read, so the state is unknown.
	unseen        string
	effectsUnseen string
	short         string // why the tables cannot be compared with the entries

	seen     map[journal.GUID]bool // chains
	gone     map[journal.GUID]goneRow
	ordinals map[collation.InstanceKey]int
	bounds   map[journal.GUID]bound
	numbers  map[signalNumber]int64 // of signals that repeating hooks consumed, with the entry
	// operators are the operators' actions, with their entries.
	operators map[journal.GUID]int64
	// cancelledWaits are waits that a function no longer waits for and that no entry cancelled, with the
	// entry that left them: their signals are on their way.
	cancelledWaits map[journal.GUID]int64
	// early are the pauses that came at once, because they came in an earlier generation.
	early map[journal.GUID]bool
	// foreign are the requests that ended otherwise than by their functions.
	foreign map[journal.GUID]requestEnd
	// calls are the names of effects by the place of their call (E15). judged is what operators
	// said of effects (3.3). undone are the requests whose compensations have run, with the
	// entries that say so.
	calls  map[place]string
	judged map[journal.Digest]judgement
	undone map[journal.GUID]int64
	// parked are the turns in which requests were parked and not released by the end of an
	// effect yet, with their entries.
	parked map[rowTurn]int64
	// external counts interrupts, of which nothing else is known.
	external int

	copies []Copy // from earlier generations
	given  given
	// refs are the outputs that entries name by digest, with the first entry that does.
	refs map[journal.Digest]int64

	// differences are those of the tables, with the number of those that are not listed. broken is
	// the first violation by the journal itself.
	differences []Difference
	unlisted    int
	broken      *Violation

	first  map[Check]*Violation
	notes  map[Check]string
	lead   *Violation
	counts Counts
}

// bound is the head of the effect chain that a terminal response accepted.
type bound struct {
	head journal.Head
	seq  int64 // of the entry that binds it
}

// cursor is the place in the chain that is read.
type cursor struct {
	chain journal.GUID
	seq   int64
	hash  journal.Digest
	begun bool
}

func newAuditor(h Header, stored *Stored) *auditor {
	return &auditor{
		h: h, stored: stored, attachments: &Attachments{}, job: New(h), twin: New(h),
		seen:     make(map[journal.GUID]bool),
		gone:     make(map[journal.GUID]goneRow),
		ordinals: make(map[collation.InstanceKey]int),
		bounds:   make(map[journal.GUID]bound),
		numbers:  make(map[signalNumber]int64),
		parked:   make(map[rowTurn]int64),

		operators:      make(map[journal.GUID]int64),
		cancelledWaits: make(map[journal.GUID]int64),
		early:          make(map[journal.GUID]bool),
		foreign:        make(map[journal.GUID]requestEnd),
		calls:          make(map[place]string),
		judged:         make(map[journal.Digest]judgement),
		undone:         make(map[journal.GUID]int64),
		refs:           make(map[journal.Digest]int64),
		first:          make(map[Check]*Violation),
		notes:          make(map[Check]string),
	}
}

// report keeps the first violation of each check by the journal itself.
func (a *auditor) report(c Check, chain journal.GUID, seq int64, format string, args ...any) {
	if a.first[c] != nil && a.broken != nil {
		return
	}
	v := &Violation{Check: c, Chain: chain, Seq: seq, Message: fmt.Sprintf(format, args...)}
	if a.broken == nil {
		a.broken = v
	}
	a.violate(v)
}

func (a *auditor) violate(v *Violation) {
	if a.first[v.Check] == nil {
		a.first[v.Check] = v
	}
	if a.lead == nil {
		a.lead = v
	}
}

// at reports a violation in an entry.
func (a *auditor) at(c Check, e *journal.Entry, format string, args ...any) {
	a.report(c, e.Chain, e.Seq, format, args...)
}

// entry checks one record against everything before it.
func (a *auditor) entry(rec journal.Record) {
	a.counts.Entries++
	a.counts.Bytes += int64(len(rec.Body))
	if !rec.Chain.IsZero() {
		a.counts.Effects++
	}
	if !a.link(rec) {
		return
	}
	of := rec
	of.Job = a.h.Job
	e, err := journal.Decode(of)
	if err != nil {
		a.unreadable(rec, err)
		return
	}
	if !a.identity(rec, e) {
		a.cannotSee(rec.Chain, fmt.Sprintf("entry %d is another's", rec.Seq))
		return
	}
	a.vocabulary(e)
	a.takenLaw(e)
	if !e.Chain.IsZero() {
		if a.effectsUnseen == "" {
			a.effect(e)
			a.fold(e, facts{}, rec.Hash)
		}
		return
	}
	if a.unseen != "" {
		return
	}
	f := a.job.read(e)
	a.laws(e, &f)
	a.fold(e, f, rec.Hash)
	a.settled(e, &f)
}

func (a *auditor) fold(e *journal.Entry, f facts, hash journal.Digest) {
	a.job.fold(e, f, hash)
	if e.Chain.IsZero() {
		f = a.twin.read(e)
	}
	a.twin.fold(e, f, hash)
}

// laws judges an entry of the main chain by the state before it.
func (a *auditor) laws(e *journal.Entry, f *facts) {
	a.ledgerLaw(e, f)
	a.receiptLaw(e, f)
	a.ordinalLaw(e, f)
	a.semaphoreLaw(e, f)
	a.openLaw(e, f)
	a.closeLaw(e, f)
	a.rowLaw(e, f)
	a.originLaw(e, f)
	a.turnLaw(e, f)
	a.waitLaw(e, f)
	a.pauseLaw(e, f)
	a.undoLaw(e, f)
	a.afterLaw(e, f)
	a.resumedLaw(e)
	a.names(e)
	a.givenLaw(e, f)
	a.remember(e, f)
}

// settled judges the state that an entry of the main chain left.
func (a *auditor) settled(e *journal.Entry, f *facts) {
	// a Leg1 may move one to a pivot
	if f.marks.has(children) || f.marks.has(closed) || f.message == journal.MessageLeg1 {
		if open := int64(len(a.job.Obligations)); open != a.job.Semaphore {
			a.at(V6, e, "the semaphore is %d, but %d obligations are open", a.job.Semaphore, open)
		}
	}
	if f.marks.has(closed) {
		a.closeTookAll(e, f)
	}
	a.armed(e, f)
	if f.last {
		if row := a.job.Rows[f.rowID]; row != nil {
			a.at(V10, e, "the message %s is done, but its %s row %s still stands", e.GUID, row.Kind, f.rowID)
		}
	}
}

// unreadable reports a body that Decode refuses. From here on the state is unknown.
func (a *auditor) unreadable(rec journal.Record, err error) {
	c := V2
	for _, unknown := range []error{journal.ErrUnknownVersion, journal.ErrUnknownKind, journal.ErrUnknownField} {
		if errors.Is(err, unknown) {
			c = V16
		}
	}
	a.report(c, rec.Chain, rec.Seq, "%v", err)
	a.cannotSee(rec.Chain, fmt.Sprintf("entry %d cannot be read", rec.Seq))
}

// blinded ends the laws over the state: after a fault in the main chain those of the job, after
// one in an effect chain those of effects.
func (a *auditor) cannotSee(chain journal.GUID, why string) {
	if chain.IsZero() && a.unseen == "" {
		a.unseen = why
	}
	if a.effectsUnseen == "" {
		a.effectsUnseen = why
	}
}
