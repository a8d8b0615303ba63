package linear

import (
	"slices"
	"strings"
)

// phase is how far the newest job of a key is.
type phase string

const (
	absent      phase = "absent" // no job has had the key
	open        phase = "open"
	completed   phase = "completed"
	failed      phase = "failed"
	interrupted phase = "interrupted"
	expired     phase = "expired" // only its tombstone is left
)

func (p phase) closed() bool { return p == completed || p == failed || p == interrupted }

// state is what may be true of one key: of its newest job, and of its signals.
// Lists are strings whose runes are ids of operations, so that states compare.
type state struct {
	phase phase
	gen   int
	what  start  // of the newest job
	taken string // signals that its hooks took, in order
	// handled of them an engine has moved on with; waits says that the next hook
	// is open.
	handled int
	waits   bool
	done    bool   // closed, and its completion tasks are done
	by      rune   // which interrupt or failing signal ended it
	asked   string // interrupts that were accepted and that no engine has taken yet
	told    string // idempotency keys of its interrupts

	kept  string // signals that nobody has taken yet, in order
	known string // idempotency keys of signals, each with the signal that had it first

	loose string // operations of unknown outcome that have had no effect yet
}

// start is what a job was started with.
type start struct{ flow, value int }

// kinds are the flows: how many hooks follow each other, and whether the job
// expires.
var kinds = []struct {
	name    string
	hooks   int
	expires bool
}{{"two", 2, false}, {"three", 3, false}, {"brief", 1, true}, {"short", 2, true}}

// failing says that the signal ends its hook, and so the job, with an error.
func failing(signal rune) bool { return signal%2 == 1 }

// moves are what an engine, the removal of expired jobs, or a late operation may
// do next.
func (s state) moves(ops map[rune]call) (next []state) {
	for _, id := range s.loose {
		late := s
		late.loose = without(late.loose, id)
		for _, r := range step(late, ops[id]) {
			next = append(next, r.after)
		}
	}
	switch {
	case s.phase == open:
		next = append(next, s.engine()...)
	case s.phase.closed() && !s.done:
		s.done = true
		next = append(next, s)
	case s.phase.closed() && kinds[s.what.flow].expires:
		next = append(next, state{phase: expired, gen: s.gen, kept: s.kept, known: s.known, loose: s.loose})
	}
	return next
}

// engine are the steps of an open job.
func (s state) engine() (next []state) {
	taken := []rune(s.taken)
	for _, id := range s.asked {
		next = append(next, s.end(interrupted, id))
	}
	switch {
	case s.handled < len(taken):
		s.handled++
		switch last := taken[s.handled-1]; {
		case failing(last):
			s = s.end(failed, last)
		case s.handled == kinds[s.what.flow].hooks:
			s = s.end(completed, 0)
		}
		return append(next, s)
	case !s.waits:
		s.waits = true
		return append(next, s)
	case s.kept != "":
		first := []rune(s.kept)[0]
		return append(next, s.take(first).dropKept(first))
	}
	return next
}

// end closes the job: what is left of it is cancelled (C15).
func (s state) end(how phase, by rune) state {
	s.phase, s.by, s.waits, s.asked = how, by, false, ""
	return s
}

// take gives the open hook a signal.
func (s state) take(signal rune) state {
	s.taken += string(signal)
	s.waits = false
	return s
}

func (s state) dropKept(signal rune) state {
	s.kept = without(s.kept, signal)
	return s
}

// settled are all that the states may have become by themselves, with themselves, each
// once.
func settled(from []state, ops map[rune]call) []state {
	all := slices.Clone(from)
	seen := make(map[state]bool, len(all))
	for _, s := range all {
		seen[s] = true
	}
	for i := 0; i < len(all); i++ {
		for _, n := range all[i].moves(ops) {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	return all
}

// with adds an id to a set.
func with(set string, id rune) string {
	ids := append([]rune(set), id)
	slices.Sort(ids)
	return string(ids)
}

// without takes an id out of a list.
func without(list string, id rune) string { return strings.Replace(list, string(id), "", 1) }

// first is the signal that had the idempotency key first.
func (s state) first(key rune) (signal rune, known bool) {
	pairs := []rune(s.known)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == key {
			return pairs[i+1], true
		}
	}
	return 0, false
}
