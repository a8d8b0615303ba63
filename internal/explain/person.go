package explain

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// person explains a row that is held for a person (E10); false if it is not.
func (e *explainer) person(s *spot, r *collation.Row) bool {
	d := e.dead[r.GUID]
	if d != nil {
		e.letter(s, d)
		return true
	}
	if r.Held != collation.HeldStuck && r.Held != collation.HeldParked {
		return false
	}
	e.add(s, KindPerson, s.name(), " is held (", r.Held, ") and has no open dead letter").
		do("", "journal-verify --job "+e.v.ID.String(), e.interrupt())
	return true
}

// letters explains open dead letters without a row here.
func (e *explainer) letters() {
	for i := range e.v.Dead {
		if d := &e.v.Dead[i]; d.State == "open" && !e.told[d.ID] {
			key := collation.InstanceKey{Activity: d.Letter.Activity, DAD: d.Letter.DAD}
			s := e.by[key]
			if s == nil {
				s = &spot{InstanceKey: key}
			}
			e.letter(s, d)
		}
	}
}

func (e *explainer) letter(s *spot, d *store.DeadView) {
	e.told[d.ID] = true
	name := "the job"
	if s.Activity != "" {
		name = s.name() + e.element(s, d)
	}
	r := e.add(s, KindPerson, fmt.Sprintf("%s has waited for a person for %s: dead letter %d (%s): %s",
		name, span(micros(e.Now-d.At)), d.ID, d.Letter.Reason, uncommanded(d.Letter.Message)))
	r.Dead = d.ID
	e.decide(r, d)
}

// uncommanded is the message of a dead letter without its last part, if that names commands: the remedies
// name them, with the number of the letter.
func uncommanded(message string) string {
	if at := strings.Index(message, "`quipu dead "); at > 0 {
		if part := strings.LastIndex(message[:at], "; "); part > 0 {
			return message[:part]
		}
	}
	return message
}

// effectKey finds in the message of a dead letter the effect that a recorded result is doubted of.
var effectKey = regexp.MustCompile("--effect ([0-9a-f]{64})")

// decide adds the decisions that a dead letter asks for, and when each is the right one.
func (e *explainer) decide(r *reason, d *store.DeadView) {
	retry := fmt.Sprintf("quipu dead retry %d", d.ID)
	done := fmt.Sprintf("quipu dead done %d --result ", d.ID)
	answer := func() {
		r.do("to end the request as one that succeeded", fmt.Sprintf("quipu dead resolve %d --result JSON", d.ID)).
			do("to end the request as one that failed", fmt.Sprintf("quipu dead fail %d", d.ID))
	}
	switch k := d.Letter.Kind; {
	case e.v.State.Closed(): // the last step of the closing message is left
		r.do("", retry)
		return
	case d.Letter.Row.IsZero(): // there is no row to send again
		answer()
		return
	case k != journal.MessageRequest && k != journal.MessageAnswer && k != journal.MessageResponse:
		r.do("", retry, e.interrupt()) // nobody else can give its result
		return
	}
	switch d.Letter.Reason {
	case collation.HeldParked:
		r.do("if it was done, with its result", done+"JSON").do("if it was not done", retry)
	case collation.ClassConfirm:
		r.do("if it was done as recorded", done+"null")
		r.renewed(d, "if it was not done", retry)
		r.do("if the receiver says so now", retry)
	case collation.ClassMisfit:
		r.do("let the handler read the result", retry)
		r.renewed(d, "to make the call again, under the next key", retry)
	case collation.ClassNondeterminism:
		r.do("run code that takes the recorded path (a change under running jobs goes behind workers.Version)", retry)
	case collation.ClassUndo:
		r.do("mend the compensation", retry).do("if it was undone by hand", done+"null")
	case collation.ReasonRuns:
		r.do("mend the handler", retry)
	case collation.ReasonSlow, collation.ReasonLoads, collation.HeldStuck:
		r.do("remove the cause", retry)
	default:
		r.do("", retry)
	}
	answer()
	r.do("to end the job", e.interrupt())
}

// renewed adds a retry that calls the effect which the dead letter names again.
func (r *reason) renewed(d *store.DeadView, first, retry string) {
	if key := effectKey.FindStringSubmatch(d.Letter.Message); key != nil {
		r.do(first, retry+" --effect "+key[1])
	}
}

// element names the element of a list that a dead letter is about.
func (e *explainer) element(s *spot, d *store.DeadView) string {
	if r := e.rows[d.Letter.Row]; r != nil && s.inst != nil && s.inst.Count > 0 {
		return fmt.Sprintf("[%d]", r.Element)
	}
	return ""
}

func (e *explainer) interrupt() string { return "quipu interrupt " + word(e.v.Key) }

// word quotes an argument for a shell.
func word(s string) string {
	plain := s != "" && s != "-" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+=", r)
	}) < 0
	if plain && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
