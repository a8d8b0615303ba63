package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// elements counts the open elements of an `each` by state.
type elements struct {
	held, sent, leased, retry, unsent, refused, answered, asleep, dead int
	next                                                               collation.Micros // the next retry
	since                                                              collation.Micros // when the oldest was sent
}

// each explains the open elements of a list in one sentence. An element that waits for a
// person has a reason of its own.
func (e *explainer) each(s *spot) {
	var n elements
	for _, r := range s.requests {
		switch {
		case r.Held == collation.HeldParallel:
			n.held++
		case e.person(s, r):
			n.dead++
		case r.Kind == journal.MessageAnswer:
			n.answered++
		case r.Holder != "":
			n.leased++
		case r.NextAt == collation.Never:
			n.asleep++
		case sent(r):
			if n.sent++; n.since == collation.Never || r.PublishedAt < n.since {
				n.since = r.PublishedAt
			}
		case refused(r):
			n.refused++
		case r.NextAt > e.Now && r.Attempt > 1:
			if n.retry++; n.next == collation.Never || r.NextAt < n.next {
				n.next = r.NextAt
			}
		default:
			n.unsent++
		}
	}
	open, count := s.inst.Open, s.inst.Count
	if count == 0 { // the instance does not have the numbers
		open, count = len(s.requests), len(s.requests)
	}
	text := fmt.Sprintf("%s: %d of %d elements have ended", s.name(), count-open, count)
	if parts := n.parts(e, s); len(parts) > 0 {
		text += "; " + strings.Join(parts, ", ")
	}
	r := e.add(s, KindEach, text, e.quiet(n.since, s.topic()))
	if r.Due = n.next; n.sent > 0 {
		r.note(e.outside(s.topic()))
	}
}

func (n *elements) parts(e *explainer, s *spot) (out []string) {
	say := func(n int, what ...string) {
		if n > 0 {
			out = append(out, strconv.Itoa(n)+" "+strings.Join(what, ""))
		}
	}
	say(n.dead, "for a person")
	oldest := ""
	if n.since != collation.Never {
		oldest = ", the oldest " + e.ago(n.since)
	}
	say(n.sent, "sent to ", s.topic(), oldest)
	say(n.leased, "with workers")
	say(n.asleep, "suspended")
	say(n.retry, "failed and tried again, the next ", e.in(n.next))
	say(n.unsent, "not published yet")
	why := ""
	if x := e.trouble("work." + s.topic()); x != "" {
		why = ": " + x
	}
	say(n.refused, "could not be published and wait", why)
	say(n.answered, "answered")
	most := ""
	if s.act != nil {
		most = fmt.Sprintf(", at most %d are under way at once", s.act.Parallel)
	}
	say(n.held, "held", most)
	return out
}

// topic is the topic of the requests, empty if none is open.
func (s *spot) topic() string {
	if len(s.requests) == 0 {
		return ""
	}
	return s.requests[0].Topic
}

// maxMissing bounds the activities that a sentence about a join names.
const maxMissing = 8

// join explains a join that is not dispatched, by its missing arrivals.
func (e *explainer) join(s *spot) {
	total, arrived := len(s.act.In), s.inst.Ledger.Arrivals()
	if arrived >= total {
		return // all are skipped, or the join is on its way
	}
	undecided := e.undecided(s.act, s.DAD)
	names := make([]string, 0, len(undecided))
	for _, a := range undecided {
		if len(names) == maxMissing {
			names = append(names, fmt.Sprintf("%d more", len(undecided)-maxMissing))
			break
		}
		names = append(names, a.Name)
	}
	missing := ""
	if len(names) > 0 {
		missing = "; missing are those of " + strings.Join(names, ", ")
	}
	none := ""
	if !s.inst.Ledger.JoinTaken() {
		none = ", none of them taken"
	}
	e.add(s, KindJoin, fmt.Sprintf("%s has %d of %s%s%s", s.name(), arrived, counted(total, "arrival"), none, missing))
}

// undecided are the activities that have not decided their transitions to the join at the
// join's address.
func (e *explainer) undecided(join *flow.Activity, dad collation.DAD) (out []*flow.Activity) {
	r := region{e: e, root: join.Parent, dad: dad.Prefix(join.Parent.Depth + 1), known: map[*flow.Activity]bool{}}
	seen := map[*flow.Activity]bool{}
	for _, t := range join.In {
		if !seen[t.From] && r.open(t.From) {
			out = append(out, t.From)
		}
		seen[t.From] = true
	}
	return out
}

// region is the part of the flow between a join and root, its immediate dominator. root's
// pass at dad decides what runs there. The region contains no passes (1.10), so every
// activity has one address.
type region struct {
	e     *explainer
	root  *flow.Activity
	dad   collation.DAD
	known map[*flow.Activity]bool
}

// open reports whether the activity may still decide its transitions.
func (r *region) open(a *flow.Activity) bool {
	if a == r.root {
		return false // it has decided, since the join has an arrival
	}
	if is, known := r.known[a]; known {
		return is
	}
	is := r.look(a)
	r.known[a] = is
	return is
}

func (r *region) look(a *flow.Activity) bool {
	dad := r.dad
	for range a.Depth - r.root.Depth {
		dad = dad.Child()
	}
	if s := r.e.by[collation.InstanceKey{Activity: a.Name, DAD: dad}]; s != nil {
		l := s.inst.Ledger
		if l.Leg1Entries() > 0 || len(s.rows) > 0 {
			return !l.Finalized()
		}
		if a.Join != "" && l.Arrivals() == len(a.In) {
			return l.JoinTaken() // otherwise it is skipped
		}
	}
	for _, t := range a.In {
		if r.open(t.From) {
			return true
		}
	}
	return false
}
