package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// errMerge says that the plans of one batch were not decided one after the other on one state.
var errMerge = errors.New("plans of one batch do not follow one another")

// writes is the sum of the plans of one batch. It has each row once, with its state before and
// after the batch.
type writes struct {
	sessions  []int64           // sessions that take a row
	hot       []hotWrite        // guards of decisions on hot states
	alone     int               // how many of them, the first, a statement of their own compares
	births    []birth           // inceptions: their jobs are inserted
	born      []int64           // the numbers of these, once they are written
	flows     []journal.FlowRef // flow versions of births that must be active
	nexts     []*collation.Plan // closed jobs that are resumed
	jobs      []*jobWrite
	instances []*instanceWrite
	receipts  []*receiptWrite
	entries   []entryWrite
	rows      []*rowWrite
	discards  []rowKey
	waits     []*waitWrite
	resolved  []resolvedWrite
	resolve   []rowKey
	letters   []letterWrite
	acted     []collation.LetterEnd // dead letters that an operator ended
	chains    []chainWrite          // rows of requests, as their effects leave them
	effects   []effectWrite
	span      span // of their jobs
	payloads  []payloadWrite
	repairs   []repairWrite
	judged    []effectWrite // completed effects that an operator judged
	signals   []signalWrite
	announce  bool             // whether the commit announces due rows
	released  []store.Outgoing // kept signals that the commit made due, for this process to publish
}

func (w *writes) empty() bool {
	return len(w.entries)+len(w.rows)+len(w.waits)+len(w.effects)+len(w.signals)+
		len(w.acted)+len(w.letters)+len(w.resolve)+len(w.discards)+len(w.payloads) == 0
}

// birth is an inception, and what the batch makes of its job afterwards.
type birth struct {
	store.Chained
	job *jobWrite
}

// chainWrite is the row of a request as its effects leave it, and what that rests on besides the
// chain: the rev before, and the state of the job.
type chainWrite struct {
	row   *collation.Row
	was   int64
	state journal.JobState
}

type payloadWrite struct {
	job journal.JobID
	*collation.Payload
}

type jobWrite struct {
	job                 journal.JobID
	n                   int64 // its number, 0 if it is not known
	semBefore, semAfter int64
	seqBefore, seqAfter int64
	hash                journal.Digest
	state               journal.JobState // "" unchanged
	closeSeq, tasksSeq  int64
	closer              *receiptWrite // the closing receipt, nil for none
	expires             collation.Micros
	was                 *store.Guard // what a decision on a hot state rests on, else nil
	born                bool         // the batch inserts it as it leaves it
}

// onlyHead says that the batch moves the head of the job's chain and nothing else of the job.
func (j *jobWrite) onlyHead() bool {
	return j.semAfter == j.semBefore && j.state == "" && j.closer == nil && j.tasksSeq == 0
}

type instanceKey struct {
	job journal.JobID
	key collation.InstanceKey
}

type instanceWrite struct {
	job journal.JobID
	of  *jobWrite
	collation.LedgerWrite
}

type receiptWrite struct {
	job journal.JobID
	of  *jobWrite
	collation.ReceiptWrite
}

type entryWrite struct {
	job   journal.JobID
	of    *jobWrite // nil for an entry of effects: its job is not moved
	chain journal.GUID
	seq   int64
	body  []byte
	hash  journal.Digest
	mac   []byte // nil: none (S9)
}

type rowKey struct {
	job  journal.JobID
	guid journal.GUID
}

// rowWrite is one dispatch row. existed says that it exists before the batch; after is nil if the
// batch deletes it. sender is the job that cancels the start of its child (C15), zero for a job's
// own row.
type rowWrite struct {
	key     rowKey
	existed bool
	after   *collation.Row
	sender  journal.JobID
	was     *int64          // its rev in a hot state, nil if it was loaded
	by      *collation.Plan // the last plan that named it
}

// waitWrite is one wait, like rowWrite. The plan of a job registers and cancels waits; that of a
// mailbox ends them, or counts signals of those that stay.
type waitWrite struct {
	key     rowKey
	box     journal.JobID // set for one that is registered
	existed bool
	seen    int // the count that was read; a delivery since then means: decide again
	after   *collation.Wait
	by      *collation.Plan
}

// signalWrite is the record of a message from outside, with what the message is addressed to.
type signalWrite struct {
	job journal.JobID
	collation.SignalWrite
}

type letterWrite struct {
	collation.DeadLetter
	state string
}

// merger indexes the writes by their keys.
type merger struct {
	writes
	jobOf      map[journal.JobID]*jobWrite
	instanceOf map[instanceKey]*instanceWrite
	receiptOf  map[rowKey]*receiptWrite
	rowOf      map[rowKey]*rowWrite
	waitOf     map[rowKey]*waitWrite // nil until there is one
	chainOf    map[rowKey]int        // nil until there is one
	effectOf   map[effectKey]int
	fault      error // the first: the plans do not follow one another
}

func (m *merger) fail(format string, args ...any) {
	if m.fault == nil {
		m.fault = fmt.Errorf(format, args...)
	}
}

// merge joins the plans of one batch, in their order. A plan without an entry moves no ledger and
// no chain.
func merge(plans []store.Chained) (*writes, error) {
	m := &merger{
		jobOf:      make(map[journal.JobID]*jobWrite, len(plans)),
		instanceOf: make(map[instanceKey]*instanceWrite, len(plans)),
		receiptOf:  make(map[rowKey]*receiptWrite, len(plans)),
		rowOf:      make(map[rowKey]*rowWrite, 2*len(plans)),
	}
	for i := range plans {
		c := &plans[i]
		if n := c.Plan.Session; n != 0 && !slices.Contains(m.sessions, n) {
			m.sessions = append(m.sessions, n)
		}
		if c.Guard != nil {
			m.hot = append(m.hot, hotWrite{c.Plan.Job, c.Guard})
		}
		switch e := c.Plan.Entry; {
		case e == nil:
			m.planRows(c.Plan)
			m.planMail(c.Plan)
			m.planLetters(c.Plan)
		case e.Kind == journal.KindCreated:
			m.plan(c)
			m.births = append(m.births, birth{*c, m.jobOf[c.Plan.Job]})
		default:
			m.plan(c)
		}
		if m.chain(c.Plan); m.fault != nil {
			return nil, fmt.Errorf("%w: job %s, message %s: %w", errMerge, c.Plan.Job, c.Plan.Message, m.fault)
		}
	}
	for i := range m.births { // what the compound statement does for a job that stands already (C14)
		if b := &m.births[i]; (b.job.closeSeq > 0) != (b.job.semAfter == threshold) {
			return nil, fmt.Errorf("%w: job %s closes at entry %d, with semaphore %d", errMerge, b.Plan.Job, b.job.closeSeq, b.job.semAfter)
		}
	}
	m.spread()
	slices.SortFunc(m.jobs, func(a, b *jobWrite) int { return slices.Compare(a.job[:], b.job[:]) })
	m.rows = slices.DeleteFunc(m.rows, func(w *rowWrite) bool { return !w.existed && w.after == nil })
	m.waits = slices.DeleteFunc(m.waits, func(w *waitWrite) bool { return !w.existed && w.after == nil })
	return &m.writes, nil
}

func (m *merger) plan(c *store.Chained) {
	p := c.Plan
	m.job(c)
	m.entries = append(m.entries,
		entryWrite{job: p.Job, of: m.jobOf[p.Job], seq: p.Entry.Seq, body: c.Body, hash: c.Hash})
	m.repair(p)
	for i := range p.Ledgers {
		m.instance(p.Job, &p.Ledgers[i])
	}
	if p.Receipt != nil {
		m.receipt(p.Job, p.Receipt)
	}
	m.planRows(p)
	m.planWaits(p)
	if !p.Next.IsZero() {
		m.nexts = append(m.nexts, p)
	}
	if p.ResolvedWait != nil {
		m.resolved = append(m.resolved, resolvedWrite{p.Job, p.ResolvedWait})
	}
	m.planLetters(p)
}

// planLetters records the plan's dead letters.
func (m *merger) planLetters(p *collation.Plan) {
	m.acted = append(m.acted, p.Letters...)
	for _, g := range p.Resolve {
		m.endLetters(rowKey{p.Job, g})
	}
	for i := range p.Dead {
		m.letters = append(m.letters, letterWrite{DeadLetter: p.Dead[i], state: collation.LetterOpen})
	}
}

func (m *merger) job(c *store.Chained) {
	p := c.Plan
	if p.Entry.Kind == journal.KindCreated { // the plans that follow move what is inserted
		m.jobOf[p.Job] = &jobWrite{
			job: p.Job, semAfter: p.Semaphore.After, seqAfter: p.Entry.Seq, hash: c.Hash, state: p.NewState, born: true,
		}
		return
	}
	j := m.jobOf[p.Job]
	if j == nil {
		j = &jobWrite{
			job: p.Job, semBefore: p.Semaphore.Before, semAfter: p.Semaphore.Before, seqBefore: p.Entry.Seq - 1,
			seqAfter: p.Entry.Seq - 1,
		}
		m.jobOf[p.Job] = j
	}
	if j.seqBefore == j.seqAfter { // the first plan of the batch that moves it, and no inception
		m.jobs = append(m.jobs, j)
	}
	if j.semAfter != p.Semaphore.Before {
		m.fail("semaphore %d, the plan before left %d", p.Semaphore.Before, j.semAfter)
	}
	if j.seqAfter+1 != p.Entry.Seq {
		m.fail("the plan before has seq %d", j.seqAfter)
	}
	j.semAfter, j.seqAfter, j.hash = p.Semaphore.After, p.Entry.Seq, c.Hash
	if p.NewState != "" {
		j.state = p.NewState
	}
	if p.Receipt != nil && p.Receipt.Closes {
		if j.closer != nil {
			m.fail("the job was closed by the plan before")
		}
		j.closeSeq = p.Entry.Seq
	}
	if p.Tasks {
		j.tasksSeq, j.expires = p.Entry.Seq, p.ExpiresAt
	}
}

func (m *merger) instance(job journal.JobID, w *collation.LedgerWrite) {
	k := instanceKey{job, w.Key}
	old := m.instanceOf[k]
	if old == nil {
		old = &instanceWrite{job: job, of: m.jobOf[job], LedgerWrite: *w}
		m.instanceOf[k] = old
		m.instances = append(m.instances, old)
		return
	}
	if w.New || w.Before != old.After {
		m.fail("instance %s%s from %s, the plan before left %s", w.Key.Activity, w.Key.DAD, w.Before, old.After)
	}
	old.After, old.ResultSeq, old.Code, old.More = w.After, w.ResultSeq, w.Code, w.More
	old.Join = old.Join || w.Join
}

func (m *merger) receipt(job journal.JobID, w *collation.ReceiptWrite) {
	k := rowKey{job, w.GUID}
	old := m.receiptOf[k]
	switch {
	case w.New && w.Gone:
		m.fail("receipt %s is new and goes", w.GUID)
	case old == nil:
		old = &receiptWrite{job: job, of: m.jobOf[job], ReceiptWrite: *w}
		m.receiptOf[k] = old
		m.receipts = append(m.receipts, old)
	case w.New || w.Before != old.After:
		m.fail("receipt %s from %d, the plan before left %d", w.GUID, w.Before, old.After)
	default:
		old.After = w.After
		old.Closes, old.Gone = old.Closes || w.Closes, old.Gone || w.Gone
	}
	if w.Closes {
		m.jobOf[job].closer = old
	}
}

func (m *merger) planRows(p *collation.Plan) {
	for i := range p.Insert { // some are for other jobs
		m.row(p, rowKey{p.Insert[i].Job, p.Insert[i].GUID}, false, &p.Insert[i])
	}
	for i := range p.Update {
		m.row(p, rowKey{p.Job, p.Update[i].GUID}, true, &p.Update[i])
	}
	for _, g := range p.Delete {
		m.row(p, rowKey{p.Job, g}, true, nil)
	}
	for _, k := range p.CancelStarts {
		m.row(p, rowKey{k.Job, k.GUID}, true, nil).sender = p.Job
	}
	if p.Payload != nil {
		m.payloads = append(m.payloads, payloadWrite{p.Job, p.Payload})
	}
	for _, k := range p.Discard {
		m.discards = append(m.discards, rowKey{k.Job, k.GUID})
	}
}

// row records a change of a dispatch row. standing says whether the plan found the row; at the
// row's first mention that tells whether the table has it.
func (m *merger) row(p *collation.Plan, k rowKey, standing bool, after *collation.Row) *rowWrite {
	w := m.rowOf[k]
	switch {
	case w == nil:
		w = &rowWrite{key: k, existed: standing}
		m.rowOf[k] = w
		m.rows = append(m.rows, w)
	case w.by == p:
		m.fail("row %s is named twice", k.guid)
	case standing != (w.after != nil):
		m.fail("row %s stands: %t, the plan before left it: %t", k.guid, standing, w.after != nil)
	}
	if _, chained := m.chainOf[k]; chained {
		m.fail("row %s is changed by an effect, too", k.guid)
	}
	w.by, w.after = p, after
	return w
}

func (m *merger) planWaits(p *collation.Plan) {
	for i := range p.Waits {
		x := &p.Waits[i]
		m.wait(p, x.GUID, false, x).box = collation.Mailbox(p.Entry.Space, x.Topic, x.Key)
	}
	for _, x := range p.CancelWaits {
		m.wait(p, x.GUID, true, nil).seen = x.Count
	}
}

// planMail records what signals did to waits of any job, and the signals' own records.
func (m *merger) planMail(p *collation.Plan) {
	for i := range p.Taken {
		t := &p.Taken[i]
		k := rowKey{t.Job, t.GUID}
		w := m.waitOf[k]
		switch {
		case w == nil:
			w = &waitWrite{key: k, existed: true, seen: t.Seen}
			m.noteWait(w)
		case !w.existed || w.after == nil || w.after.Count != t.Seen:
			m.fail("wait %s is not as the plan before left it", t.GUID)
		}
		if w.after = nil; !t.Ended {
			w.after = &collation.Wait{Count: t.Count}
		}
	}
	for _, x := range p.Signals {
		m.signals = append(m.signals, signalWrite{p.Job, x})
	}
}

func (m *merger) noteWait(w *waitWrite) {
	if m.waitOf == nil {
		m.waitOf = make(map[rowKey]*waitWrite)
	}
	m.waitOf[w.key] = w
	m.waits = append(m.waits, w)
}

// wait records a change of a wait, as row does.
func (m *merger) wait(p *collation.Plan, guid journal.GUID, standing bool, after *collation.Wait) *waitWrite {
	k := rowKey{p.Job, guid}
	w := m.waitOf[k]
	switch {
	case w == nil:
		w = &waitWrite{key: k, existed: standing}
		m.noteWait(w)
	case w.by == p:
		m.fail("wait %s is named twice", guid)
	case standing != (w.after != nil):
		m.fail("wait %s stands: %t, the plan before left it: %t", guid, standing, w.after != nil)
	case w.existed:
		m.fail("wait %s is registered again", guid)
	}
	w.by, w.after = p, after
	return w
}

// endLetters marks the dead letters of a row as answered: here those of this batch, by the
// statement those in the table.
func (m *merger) endLetters(k rowKey) {
	for i := range m.letters {
		if l := &m.letters[i]; l.Job == k.job && l.Row == k.guid && l.state == collation.LetterOpen {
			l.state = collation.LetterAnswered
		}
	}
	m.resolve = append(m.resolve, k)
}
