package collation

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of signals.
const (
	// MaxSignalKey bounds the key of a signal, in bytes.
	MaxSignalKey = 512
	// MaxReach bounds the waits that one signal of mode all reaches.
	MaxReach = 10_000
)

// KeepSignal is how long a signal that nobody waits for is kept by default, in µs.
const KeepSignal = Micros(24 * 3600 * 1e6)

// CodePass is the code of a signal that keeps a repeating hook open (1.11).
const CodePass = 202

// Signal is a signal on its way to a wait. Its dispatch row belongs to its Mailbox, not to a
// job.
type Signal struct {
	GUID    journal.GUID    `json:"-"`
	Topic   string          `json:"topic"`
	Key     string          `json:"key"`
	Code    int             `json:"code"`
	Payload json.RawMessage `json:"payload"` // canonical
	All     bool            `json:"all,omitempty"`
	Keep    Micros          `json:"keep,omitempty"` // 0: KeepSignal
	Sent    Micros          `json:"sent"`
	Trace   string          `json:"trace,omitempty"` // of the sender
	Who     string          `json:"who,omitempty"`   // who sent it, for the journal (O11)
}

// Row is the dispatch row of the signal, due now.
func (s *Signal) Row(space string) (Row, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return Row{}, fmt.Errorf("signal %s: %w", s.Topic, err)
	}
	return Row{
		GUID: s.GUID, Job: Mailbox(space, s.Topic, s.Key), Kind: journal.MessageSignal, DAD: RootDAD,
		Topic: s.Topic, Body: body, NextAt: s.Sent,
	}, nil
}

// ErrSignal says that the row of a signal cannot be read.
var ErrSignal = errors.New("unreadable signal")

// SignalOf reads the signal out of its dispatch row.
func SignalOf(r *Row) (*Signal, error) {
	s := &Signal{}
	if err := json.Unmarshal(r.Body, s); err != nil {
		return nil, fmt.Errorf("%w: row %s: %w", ErrSignal, r.GUID, err)
	}
	s.GUID = r.GUID
	return s, nil
}

// Kept makes the row of a signal that nobody waits for: held until WithinAt. PublishedAt is
// when it was sent, which orders the kept signals.
func (s *Signal) Kept(r Row) Row {
	keep := s.Keep
	if keep == 0 {
		keep = KeepSignal
	}
	r.Held, r.NextAt, r.WithinAt, r.PublishedAt = HeldKept, Never, s.Sent+keep, s.Sent
	return r
}

// Wakes is how many kept signals become due when the wait is registered, the oldest first. If
// any signal ends the wait it is 1, so that a key with many kept signals costs each wait the
// same. Otherwise it is MaxReach.
func (w *Wait) Wakes() int {
	if w.Repeat || w.MaxAge > 0 {
		return MaxReach
	}
	return 1
}

// Takes reports whether the wait takes the signal at the time now. A signal that was kept
// longer than MaxAge is passed over.
func (w *Wait) Takes(s *Signal, now Micros) bool {
	return w.MaxAge == 0 || s.Sent >= w.Since || now-s.Sent <= w.MaxAge
}

// Deliver makes the row of the wake-up that a signal brings to a wait, and says whether the
// wait ends. Otherwise the caller raises Count by 1.
func (w *Wait) Deliver(s *Signal, now Micros, mode Mode) (wake Row, ends bool) {
	r := journal.Response{
		Kind: journal.ResponseTerminal, Code: s.Code, Output: s.Payload, By: journal.BySignal, Signal: s.GUID,
		Who: s.Who,
	}
	guid := w.GUID
	ends = true
	if w.Repeat {
		guid = SignalledGUID(w.GUID, s.GUID)
		r.Number = w.Count + 1
		if s.Code == CodePass {
			r.Kind, r.Code, ends = journal.ResponsePass, CodeOK, false
		}
	}
	if r.Code == CodePass {
		r.Code = CodeOK
	}
	if !w.Request.IsZero() {
		r.Kind, r.Request = journal.ResponseWake, w.Request
	}
	if r.Code != CodeOK {
		r.Output = nil
		r.Error = &journal.Failure{Class: "signal", Message: fmt.Sprintf("signal %s came with code %d", w.Topic, s.Code), Data: s.Payload}
	}
	wake = Row{
		GUID: guid, Job: w.Job, Kind: journal.MessageWakeUp, Activity: w.Activity, DAD: w.DAD,
		Body: journal.EncodeResponse(&r), Origin: w.Origin,
	}
	wake.published(now, &mode)
	return wake, ends
}

// InterruptOrder is the body of an interrupt's dispatch row.
type InterruptOrder struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Throw   bool   `json:"throw"`
	Descend bool   `json:"descend"`
	From    string `json:"from,omitempty"` // what sent it, for people
	Who     string `json:"who,omitempty"`  // who asked for it, for the journal (O11)
}

// Row is the dispatch row of an interrupt of the target.
func (o *InterruptOrder) Row(guid journal.GUID, target journal.JobID, now Micros) (Row, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return Row{}, fmt.Errorf("interrupt: %w", err)
	}
	return Row{GUID: guid, Job: target, Kind: journal.MessageInterrupt, DAD: RootDAD, Body: body, NextAt: now}, nil
}

// CheckInterrupt checks the row of an interrupt from outside. Its code has to be an error's,
// 400 to 599, so that the job that it ends did not succeed.
func CheckInterrupt(r *Row) error {
	var o InterruptOrder
	if err := json.Unmarshal(r.Body, &o); err != nil {
		return fmt.Errorf("unreadable interrupt %s: %w", r.GUID, err)
	}
	if o.Code < 400 || o.Code > 599 {
		return fmt.Errorf("code %d: an interrupt has 400 to 599", o.Code)
	}
	return nil
}

// StartOrder is the body of the dispatch row of a child's start, until the child's inception.
type StartOrder struct {
	Flow    string          `json:"flow"`
	Version string          `json:"version,omitempty"` // "" the active one
	Key     string          `json:"key"`
	Input   json.RawMessage `json:"input"`
	Parent  journal.Parent  `json:"parent"`
	Trace   string          `json:"trace,omitempty"` // of the parent
	// Fault says why the order names no child: an expression failed when a further attempt was
	// ordered. Such an order is refused.
	Fault string `json:"fault,omitempty"`
}

// Derived reports whether the order's key was made for this child (1.11), so that nobody else has it.
func (o *StartOrder) Derived(child journal.JobID) bool {
	return strings.HasSuffix(o.Key, "-"+hex.EncodeToString(child[:6]))
}

// Order reads the order from the row of a child's start.
func (r *Row) Order() (*StartOrder, error) {
	o := &StartOrder{}
	if err := json.Unmarshal(r.Body, o); err != nil {
		return nil, fmt.Errorf("unreadable start %s: %w", r.GUID, err)
	}
	return o, nil
}

// Refusal makes the outcome of a refused start (1.11): 404 for an unknown flow, 400 for an
// input that its schema refuses, 409 for a key that belongs to another job.
func (o *StartOrder) Refusal(child journal.JobID, code int, class, message string, now Micros, mode Mode) Row {
	return o.Outcome(child, &journal.Response{
		Kind: journal.ResponseTerminal, Code: code, Error: &journal.Failure{Class: class, Message: message},
	}, now, mode)
}

// Refused decides on the start row of a child that cannot begin. It writes the end of the row and
// the refusal (1.11).
func (o *StartOrder) Refused(row *Row, code int, class, message string, now Micros, mode Mode) *Plan {
	return &Plan{
		Job:     row.Job,
		Message: row.GUID,
		Outcome: Handled,
		Done:    true,
		RowWrites: RowWrites{
			Delete: []journal.GUID{row.GUID},
			Insert: []Row{o.Refusal(row.Job, code, class, message, now, mode)},
		},
	}
}

// Heard reports whether somebody waits for an outcome of the order: a durable function, or an
// await, if only for the child's begin. Nobody waits for compensations, whose function has
// ended (3.5).
func (o *StartOrder) Heard() bool { return o.Parent.Awaited || o.Parent.Turn > 0 }

// begun is the outcome of a child whose parent waits for its begin alone; nil: it waits for the
// end, or for nothing.
func begun(p *journal.Parent, child journal.JobID, key string, now Micros, mode Mode) []Row {
	if p == nil || p.Awaited || p.Turn == 0 {
		return nil
	}
	id := append(canonical.AppendString([]byte(`{"id":`), key), '}')
	return []Row{outcome(p, child, &journal.Response{Kind: journal.ResponseTerminal, Code: CodeOK, Output: id}, now,
		mode)}
}

// Outcome makes the row that answers the await, or the function, that gave the order.
func (o *StartOrder) Outcome(child journal.JobID, r *journal.Response, now Micros, mode Mode) Row {
	return outcome(&o.Parent, child, r, now, mode)
}

// outcome makes the dispatch row of a child's outcome, addressed to its parent.
func outcome(p *journal.Parent, child journal.JobID, r *journal.Response, now Micros, mode Mode) Row {
	x := *r
	x.Child = child
	if p.Turn == 0 { // the child of a durable function
		x.Request = p.Leg1
	}
	row := Row{
		GUID: OutcomeGUID(child.Start(), p.Turn), Job: p.Job, Kind: journal.MessageOutcome,
		Activity: p.Activity, DAD: DAD(p.DAD), Request: Request{Turn: p.Turn}, Body: journal.EncodeResponse(&x),
	}
	row.published(now, &mode)
	return row
}
