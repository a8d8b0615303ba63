package explain

import (
	"fmt"
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
		Commands = []string{"journal-verify --job " + e.v.ID.String(), e.interrupt()}
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
		name, span(micros(e.Now-d.At)), d.ID, d.Letter.Reason, d.Letter.Message))
	r.Dead = d.ID
	retry := fmt.Sprintf("quipu dead retry %d", d.ID)
	answers := []string{fmt.Sprintf("quipu dead resolve %d --result JSON", d.ID), fmt.Sprintf("quipu dead fail %d", d.ID)}
	switch {
	case e.v.State.Closed(): // the last step of the closing message is left
		r.Commands = []string{retry}
	case d.Letter.Row.IsZero(): // there is no row to send again
		r.Commands = answers
	case d.Letter.Kind == journal.MessageRequest || d.Letter.Kind == journal.MessageAnswer ||
		d.Letter.Kind == journal.MessageResponse:
		r.Commands = []string{retry}
		// it is about an effect: what makes its call again does not come first
		if strings.Contains(d.Letter.Message, "`quipu dead done`") {
			r.Commands = []string{fmt.Sprintf("quipu dead done %d --result JSON", d.ID), retry}
		}
		r.Commands = append(append(r.Commands, answers...), e.interrupt())
	default: // nobody else can give its result
		r.Commands = []string{retry, e.interrupt()}
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
