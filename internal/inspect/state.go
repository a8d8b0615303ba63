package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// state is a job as its entries tell it, up to one of them (J10). It trusts them: replay, which judges
// them, has a fold of its own.
type state struct {
	job    journal.JobID
	flow   journal.FlowRef
	parent *journal.Parent
	from   *journal.From
	next   journal.JobID // that resumes this one

	at         *journal.Entry // the last one of the main chain
	times      []int64        // of the entries, by their seq
	state      journal.JobState
	semaphore  int64
	started    int64 // µs, as all times here
	ended      int64
	closer     journal.GUID // the message that closed the job
	closedAt   int64        // seq of its entry; 0: the job is open
	tasksDone  bool
	closeState journal.JobState
	code       int
	err        *journal.Failure
	output     []byte

	instances map[collation.InstanceKey]*instance
	// others are the entries of results that are not recorded with their instance: those of passes with an
	// index over 0, at their own address (C6), and of elements, under activity[index].
	others      map[collation.InstanceKey]int64
	chains      map[journal.GUID]bool // the requests that have recorded effects
	undone      map[journal.GUID]bool // the requests for which a job with compensations was ordered (3.5)
	receipts    map[journal.GUID]*receipt
	rows        map[journal.GUID]*row
	waits       map[journal.GUID]*collation.Wait
	children    map[journal.GUID]*child // by the GUID of their start
	pauses      map[journal.GUID]*pause // by the GUID of the wake-up, the wait or the child's start
	wakers      map[journal.GUID]journal.GUID
	obligations map[journal.GUID]obligation // by the message that made each (C13)
	released    map[journal.GUID]int        // the turn in which the end of an effect released a request (E4)
}

// instance is what entries tell of an instance beside what its table has.
type instance struct {
	collation.Instance

	pivot, repeat bool           // its messages are passes
	since         int64          // when its last wait or timer was registered
	arms          []journal.GUID // timers, bounds and wait of its Leg1
}

// receipt is what a message brought, and how far it is.
type receipt struct {
	ledger  collation.GUIDLedger
	verdict journal.Verdict
	seq     int64 // of the entry that accepted it
	row     journal.GUID
	message journal.MessageKind
	kind    journal.ResponseKind // "": it brings no response
	code    int
	element int             // of a list
	pauses  []journal.Pause // that its suspension names
	of      journal.GUID    // the pause that it ends
}

// row is an open dispatch row. When it was published and who holds it is not in the journal.
type row struct {
	kind    journal.MessageKind
	key     collation.InstanceKey
	topic   string
	element int
	turn    int
	attempt int
	nextAt  int64 // when a timer or a bound is due, or as an entry left it; 0: at once, or never
	held    string
	origin  int64
	pauses  []journal.GUID // what the function of the request waits for (E12)
	child   journal.JobID  // whose outcome it is
}

// asleep reports the request of a suspended function, which is not sent by time.
func (r *row) asleep() bool {
	return r.kind == journal.MessageRequest && r.held == "" && r.nextAt == 0 && len(r.pauses) > 0
}

// child is a job that was started and whose outcome is due.
type child struct {
	job    journal.JobID
	key    collation.InstanceKey
	turn   int // of an await; 0: a function started it
	at     int64
	origin int64
}

// pause is something that a durable function waits or waited for (E12).
type pause struct {
	journal.PauseRef

	request journal.GUID
	key     collation.InstanceKey
	named   bool // the last suspension names it, and the request has not ended
	since   int64
	accepts int64 // the entry that accepted its wake-up; 0: none
	due     int64
	at      int64 // when a suspension first named it
	came    bool  // its wake-up is done
}

// obligation is something that keeps the job from closing (C13).
type obligation struct {
	key   collation.InstanceKey
	since int64
}

func newState(job journal.JobID) *state {
	return &state{
		job: job, times: []int64{0}, instances: map[collation.InstanceKey]*instance{},
		receipts: map[journal.GUID]*receipt{},
		others:   map[collation.InstanceKey]int64{}, chains: map[journal.GUID]bool{}, undone: map[journal.GUID]bool{},
		rows: map[journal.GUID]*row{}, waits: map[journal.GUID]*collation.Wait{},
		children: map[journal.GUID]*child{}, pauses: map[journal.GUID]*pause{},
		wakers: map[journal.GUID]journal.GUID{}, obligations: map[journal.GUID]obligation{},
		released: map[journal.GUID]int{},
	}
}

// step is what one entry of the main chain does, given the state before it.
type step struct {
	e       *journal.Entry
	key     collation.InstanceKey
	inst    *instance // nil: none yet
	start   bool      // its message is the job's start
	fresh   bool      // no entry before it accepted its message
	row     journal.GUID
	message journal.MessageKind
	ordinal int
	kind    journal.ResponseKind // what the message brought, in this entry or before
	code    int                  // of the result after this entry
	pauses  []journal.Pause
	of      journal.GUID

	decides bool // transitions (C12)
	ends    bool // one obligation
	element bool // one element of a list
	stays   bool // the request's row stays for its next turn
}

// apply takes the next entry of its chain.
func (s *state) apply(e *journal.Entry) error {
	switch {
	case !e.Chain.IsZero():
		s.release(e)
		return nil
	case e.Job != s.job, s.at == nil && e.Seq != 1, s.at != nil && e.Seq != s.at.Seq+1:
		return fmt.Errorf("entry %d of job %s does not follow the one before it", e.Seq, e.Job)
	}
	s.follow(e)
	return nil
}

// follow updates the state by an entry of the main chain.
func (s *state) follow(e *journal.Entry) {
	x := s.read(e)
	s.at, s.times = e, append(s.times, e.Time)
	s.count(&x)
	s.record(&x)
	s.accept(&x)
	s.pause(&x)
	s.work(&x)
	s.move(&x)
	s.owe(&x)
	s.stand(&x)
}

func instanceKey(activity, dad string) collation.InstanceKey {
	return collation.InstanceKey{Activity: activity, DAD: collation.DAD(dad)}
}

// read finds out what an entry does.
func (s *state) read(e *journal.Entry) step {
	x := step{e: e, key: instanceKey(e.Activity, e.DAD), start: e.GUID == e.Job.Start()}
	x.inst = s.instances[x.key]
	known := s.receipts[e.GUID]
	x.row, x.fresh = s.rowOf(e, known), known == nil
	if s.rows[x.row] == nil && known == nil && x.row == e.GUID {
		s.arrive(&x)
	}
	r := s.rows[x.row]
	switch {
	case x.start:
		x.message = journal.MessageStart
	case known != nil:
		x.message = known.message
	case r != nil && r.kind == journal.MessageRequest:
		x.message = journal.MessageResponse
	case r != nil:
		x.message = r.kind
	}
	var ledger collation.GUIDLedger
	if known != nil {
		ledger, x.kind, x.code, x.pauses, x.of = known.ledger, known.kind, known.code, known.pauses, known.of
	}
	if e.Receipts() {
		ledger = collation.GUIDLedger(e.Receipt)
	}
	x.ordinal = ledger.Ordinal()
	if e.Response != nil {
		x.kind, x.code, x.pauses = e.Response.Kind, e.Response.Code, e.Response.Pauses
	}
	switch {
	case e.Result != nil:
		x.code = e.Result.Code
	case failedExpression(e):
		x.code = collation.CodeInternal
	}
	x.decide()
	return x
}

// rowOf names the row of an entry's message: its own or, for a response, that of its request.
func (s *state) rowOf(e *journal.Entry, known *receipt) journal.GUID {
	switch {
	case known != nil:
		return known.row
	case s.rows[e.GUID] != nil, e.Response != nil && e.Response.Kind == journal.ResponseWake:
		return e.GUID
	case e.Response != nil && !e.Response.Request.IsZero():
		return e.Response.Request
	case e.Kind == journal.KindStale && !e.Ended.IsZero():
		return e.Ended
	}
	return e.GUID
}

func marked(e *journal.Entry, m journal.Mark) bool { return slices.Contains(e.Marks, m) }

// decide finds out what the step 2 of an entry does, if it has one.
func (x *step) decide() {
	e := x.e
	if !marked(e, journal.MarkChildren) || marked(e, journal.MarkAfterClose) {
		return
	}
	leg1 := e.Kind == journal.KindLeg1
	halts := marked(e, journal.MarkClosed) && leg1 && marked(e, journal.MarkWork) && e.Result == nil &&
		!failedExpression(e)
	switch {
	case x.start, x.message == journal.MessageCycle && e.Kind == journal.KindLeg2:
		x.decides, x.ends = true, true
	case leg1:
		x.decides, x.ends = !halts, true
	case e.Kind != journal.KindLeg2:
	case x.kind == journal.ResponsePass:
		x.decides = true
	case x.kind != journal.ResponseTerminal:
		x.stays = x.message == journal.MessageResponse || x.message == journal.MessageAnswer
	default:
		x.element = x.inst != nil && x.inst.Count > 0
		x.decides = !x.element || x.inst.Open == 1
		x.ends = x.decides
	}
}

// failedExpression reports that the error of an expression replaced the result of an activity (E11).
func failedExpression(e *journal.Entry) bool {
	return e.Trouble != nil && e.Trouble.Reason == collation.ReasonExpression
}

// last is the seq of the last entry of the main chain; 0: there is none yet.
func (s *state) last() int64 {
	if s.at == nil {
		return 0
	}
	return s.at.Seq
}

func (s *state) instance(key collation.InstanceKey) *instance {
	i := s.instances[key]
	if i == nil {
		i = &instance{}
		s.instances[key] = i
	}
	return i
}

// count takes over the digits that an entry changes.
func (s *state) count(x *step) {
	e := x.e
	before := collation.ActivityLedger(0)
	if x.inst != nil {
		before = x.inst.Ledger
	}
	for _, m := range e.Moves() {
		s.instance(instanceKey(m.Activity, m.DAD)).Ledger = collation.ActivityLedger(m.After)
	}
	if e.Kind == journal.KindLeg1 && marked(e, journal.MarkWork) && s.firstPass(e, before) {
		s.instance(x.key).pivot = true
	}
	if !e.Receipts() {
		return
	}
	r := s.receipts[e.GUID]
	if r == nil {
		r = &receipt{seq: e.Seq, row: x.row, message: x.message}
		s.receipts[e.GUID] = r
	}
	r.ledger, r.verdict = collation.GUIDLedger(e.Receipt), journal.VerdictHandled
	if e.Kind == journal.KindStale {
		r.verdict = journal.VerdictStale
	}
	r.kind, r.code, r.pauses, r.of = x.kind, x.code, x.pauses, x.of
	if e.Response != nil {
		r.element = e.Response.Element
	}
}

// firstPass reports the Leg1 of a pivot that passes through, which counts its first pass (1.10).
func (s *state) firstPass(e *journal.Entry, before collation.ActivityLedger) bool {
	sends := func(d journal.Dispatched) bool {
		return d.Kind == journal.MessageSignal || d.Kind == journal.MessageInterrupt
	}
	if e.Result == nil && !failedExpression(e) || slices.ContainsFunc(e.Dispatched, sends) {
		return false
	}
	return collation.ActivityLedger(e.Ledger).Leg2Entries()-before.Leg2Entries() == 1
}

// record finds where results are, and their codes (J7): a response's, what the engine made of it, or the
// error of an expression (E11).
func (s *state) record(x *step) {
	e := x.e
	open := s.closedAt == 0
	answers := x.kind == journal.ResponseTerminal || x.kind == journal.ResponsePass
	if r := s.receipts[e.GUID]; r != nil && e.Kind == journal.KindLeg2 && !x.start && open && answers &&
		marked(e, journal.MarkWork) {
		code := x.code
		if e.Response != nil {
			code = e.Response.Code
		}
		if x.inst != nil && x.inst.Count > 0 {
			s.others[elementKey(x.key, r.element)] = r.seq
		} else {
			s.result(x, code, r.seq)
		}
	}
	switch {
	case e.Kind == journal.KindCreated:
		s.result(x, collation.CodeOK, e.Seq)
	case e.Result != nil && open:
		s.result(x, e.Result.Code, e.Seq)
	case failedExpression(e) && (x.decides || x.ends):
		s.result(x, collation.CodeInternal, e.Seq)
	}
}

// result notes the result of the pass that a message makes: its index is the ordinal minus 1 (C6).
func (s *state) result(x *step, code int, seq int64) {
	key := x.key
	if x.ordinal > 1 && x.inst != nil && (x.inst.pivot || x.inst.repeat) {
		key.DAD = key.DAD.WithIndex(x.ordinal - 1)
	}
	if i := s.instances[key]; i != nil {
		i.ResultSeq, i.Code = seq, code
	} else {
		s.others[key] = seq
	}
}

// elementKey names an element of a list.
func elementKey(key collation.InstanceKey, element int) collation.InstanceKey {
	key.Activity += "[" + strconv.Itoa(element) + "]"
	return key
}

// accept removes what the accepted message used up: the wait whose signal it brings, or the child
// whose outcome it is.
func (s *state) accept(x *step) {
	if r := s.rows[x.row]; r != nil && r.kind == journal.MessageOutcome {
		delete(s.children, r.child.Start())
	}
	r := x.e.Response
	if x.e.Kind != journal.KindLeg2 || r == nil || x.inst == nil {
		return
	}
	x.inst.Child = journal.JobID{}
	if r.By != journal.BySignal {
		return
	}
	if guid, w := s.waitOf(x.inst); w != nil {
		if w.Count++; r.Kind == journal.ResponseTerminal {
			delete(s.waits, guid)
		}
	}
}

// waitOf returns the open wait of an instance.
func (s *state) waitOf(i *instance) (journal.GUID, *collation.Wait) {
	for _, guid := range i.arms {
		if w := s.waits[guid]; w != nil {
			return guid, w
		}
	}
	return journal.GUID{}, nil
}

// owe recounts the open obligations (C13).
func (s *state) owe(x *step) {
	e := x.e
	if e.Kind == journal.KindCreated {
		s.obligations[e.GUID] = obligation{x.key, e.Seq}
	}
	if x.ends {
		own := x.start || e.Kind == journal.KindLeg1 || x.message == journal.MessageCycle
		if own || x.inst == nil {
			delete(s.obligations, e.GUID)
		} else {
			delete(s.obligations, x.inst.Leg1)
		}
	}
	for i := range e.Dispatched {
		switch d := &e.Dispatched[i]; d.Kind {
		case journal.MessageCycle: // the obligation of a cycle moves to its pivot
			delete(s.obligations, e.GUID)
			fallthrough
		case journal.MessageLeg1:
			s.obligations[d.GUID] = obligation{instanceKey(d.Activity, d.DAD), e.Seq}
		}
	}
	if marked(e, journal.MarkClosed) {
		clear(s.obligations)
	}
	if e.Semaphore != nil {
		s.semaphore = *e.Semaphore
	}
}

// stand follows the state of the job (C16).
func (s *state) stand(x *step) {
	e := x.e
	repaired := e.Kind == journal.KindOperator && e.Operator != nil && e.Operator.Action == collation.ActionRepair
	if c := e.Close; c != nil {
		s.code, s.err = cmp.Or(c.Code, s.code), cmp.Or(c.Error, s.err)
		if c.Output != nil {
			s.output = c.Output
		}
	}
	switch {
	case e.Kind == journal.KindCreated:
		s.state, s.started, s.parent, s.from = journal.JobOpen, e.Time, e.Parent, e.From
		if e.Flow != nil {
			s.flow = *e.Flow
		}
	case e.Kind == journal.KindQuarantine:
		s.state = journal.JobQuarantined
	case repaired && s.closedAt == 0:
		s.state = journal.JobOpen
	case repaired:
		s.state = s.closeState
	case e.Kind == journal.KindResumed:
		s.next = e.Next
	}
	if marked(e, journal.MarkClosed) && s.closedAt == 0 {
		s.closer, s.closedAt, s.ended = e.GUID, e.Seq, e.Time
		if e.Close != nil {
			s.state, s.closeState = e.Close.State, e.Close.State
		}
	}
	if marked(e, journal.MarkTasks) && e.GUID == s.closer {
		s.tasksDone = true
	}
}
