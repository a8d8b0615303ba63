package linear

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/quipu-journal/quipu/internal/store"
)

// verb is what a call does.
type verb string

const (
	doStart     verb = "start"
	doSignal    verb = "signal"
	doSignalAll verb = "signal-all"
	doInterrupt verb = "interrupt"
	doFind      verb = "find"
	doJob       verb = "job"
	doWait      verb = "wait"
)

func (v verb) reads() bool { return v == doFind || v == doJob || v == doWait }

// call is an operation on a key.
type call struct {
	id   rune // of a signal and an interrupt, and of what it brings; odd: the signal ends its hook with an error
	verb verb
	key  string
	what start // of a start
	once rune  // the idempotency key, 0 for none
	gen  int   // which job is read
}

// answer is what an operation said. A field that its verb does not know is zero.
type answer struct {
	unknown  bool // nothing is known of it
	notFound bool
	gen      int

	already, sameFlow, sameInput bool // of a start

	signal    store.SignalState // what became of it
	reached   int
	duplicate bool // of a signal and an interrupt

	seen view // of a read
}

// view is what a read shows of a job.
type view struct {
	phase   phase
	done    bool
	waits   bool   // it has an open hook; not of a wait
	handled int    // hooks that have ended; not of a wait
	taken   string // the output of one that completed
	by      rune   // what ended one that did not
}

// result is one way in which an operation may act and answer.
type result struct {
	says  answer
	after state
}

// step is what a call does to a state and says; several results where it may act
// in several ways.
func step(s state, c call) []result {
	switch c.verb {
	case doStart:
		return []result{s.start(c)}
	case doSignal, doSignalAll:
		return []result{s.signal(c)}
	case doInterrupt:
		return []result{s.interrupt(c)}
	case doFind:
		if s.phase == absent || s.phase == expired {
			return []result{{answer{notFound: true}, s}}
		}
		return []result{{answer{gen: s.gen}, s}}
	case doJob, doWait:
		return s.read(c)
	}
	panic("no verb " + c.verb)
}

func (s state) start(c call) result {
	if s.phase != absent && s.phase != expired {
		return result{answer{
			gen: s.gen, already: true, sameFlow: s.what.flow == c.what.flow, sameInput: s.what.value == c.what.value,
		}, s}
	}
	fresh := state{phase: open, gen: s.gen + 1, what: c.what, kept: s.kept, known: s.known, loose: s.loose}
	return result{answer{gen: fresh.gen}, fresh}
}

// signal: what was kept goes first to a hook that has opened, so where both are
// the new one finds no hook.
func (s state) signal(c call) result {
	if c.once != 0 {
		if first, known := s.first(c.once); known {
			became := store.SignalConsumed
			if strings.ContainsRune(s.kept, first) {
				became = store.SignalKept
			}
			return result{answer{signal: became, duplicate: true}, s}
		}
		s.known += string([]rune{c.once, c.id})
	}
	if s.waits && s.kept != "" {
		first := []rune(s.kept)[0]
		s = s.take(first).dropKept(first)
	}
	switch {
	case s.waits:
		return result{answer{signal: store.SignalConsumed, reached: 1}, s.take(c.id)}
	case c.verb == doSignalAll:
		return result{answer{signal: store.SignalMissed}, s}
	}
	s.kept += string(c.id)
	return result{answer{signal: store.SignalKept}, s}
}

func (s state) interrupt(c call) result {
	if s.phase == absent || s.phase == expired {
		return result{answer{notFound: true}, s}
	}
	says := answer{gen: s.gen}
	if c.once != 0 {
		if strings.ContainsRune(s.told, c.once) {
			says.duplicate = true
			return result{says, s}
		}
		s.told = with(s.told, c.once)
	}
	if s.phase == open {
		s.asked = with(s.asked, c.id)
	}
	return result{says, s}
}

// read: a wait answers only when the job has ended, or there is none.
func (s state) read(c call) []result {
	v := view{phase: s.phase, done: s.done, waits: s.waits, handled: s.handled, by: s.by}
	switch {
	case s.gen > c.gen && c.verb == doWait: // its tombstone may be there still
		return []result{{answer{notFound: true}, s}, {answer{seen: view{phase: expired, done: true}}, s}}
	case s.phase == absent || s.gen != c.gen: // what had the key before is gone
		return []result{{answer{notFound: true}, s}}
	case s.phase == expired:
		return []result{{answer{seen: view{phase: expired, done: true}}, s}}
	case s.phase == completed && s.done:
		v.taken = s.taken
	}
	if c.verb == doJob {
		return []result{{answer{seen: v}, s}}
	}
	if !s.done {
		return nil
	}
	v.handled = 0
	return []result{{answer{seen: v}, s}}
}

// model is that of a history, with the operations that its states may name. The
// history is partitioned by key.
func model(history []porcupine.Operation) porcupine.Model {
	ops := map[rune]call{}
	for _, o := range history {
		if c := o.Input.(call); c.id != 0 {
			ops[c.id] = c
		}
	}
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Partition: byKey,
		Init:      func() any { return &states{all: []state{{phase: absent}}} },
		Step: func(before, input, output any) (bool, any) {
			after := before.(*states).next(input.(call), output.(answer), ops)
			return len(after.all) > 0, after
		},
		Equal: func(a, b any) bool { return a.(*states).equal(b.(*states)) },
		Hash: func(s any) (sum uint64) {
			for _, one := range s.(*states).all {
				sum += maphash.Comparable(seed, one) // in whichever order
			}
			return sum
		},
		DescribeOperation: func(input, output any) string { return describe(input.(call), output.(answer)) },
		DescribeState:     func(s any) string { return s.(*states).String() },
	}
}

// states are all that a key may be in, each once. What they may become by themselves
// overlaps: it is found for all together, and once, for the search comes by again.
type states struct {
	all     []state
	settled []state
}

// next are the states after a call with this answer.
func (x *states) next(c call, said answer, ops map[rune]call) *states {
	after, seen := &states{}, map[state]bool{}
	add := func(s state) {
		if !seen[s] {
			seen[s] = true
			after.all = append(after.all, s)
		}
	}
	if said.unknown {
		for _, s := range x.all {
			s.loose = with(s.loose, c.id)
			add(s)
		}
		return after
	}
	if x.settled == nil {
		x.settled = settled(x.all, ops)
	}
	for _, s := range x.settled {
		for _, r := range step(s, c) {
			if r.says == said {
				add(r.after)
			}
		}
	}
	return after
}

func (x *states) equal(y *states) bool {
	if len(x.all) != len(y.all) {
		return false
	}
	in := make(map[state]bool, len(x.all))
	for _, s := range x.all {
		in[s] = true
	}
	return !slices.ContainsFunc(y.all, func(s state) bool { return !in[s] })
}

// String is a set of states for people.
func (x *states) String() string {
	lines := make([]string, len(x.all))
	for i, s := range x.all {
		lines[i] = s.String()
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// byKey partitions a history; what is of unknown outcome is over with its call,
// since its effect is pending from then on.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	keys := map[string][]porcupine.Operation{}
	for _, o := range history {
		if o.Output.(answer).unknown {
			o.Return = o.Call
		}
		key := o.Input.(call).key
		keys[key] = append(keys[key], o)
	}
	for _, part := range keys {
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b []porcupine.Operation) int {
		return cmp.Compare(a[0].Input.(call).key, b[0].Input.(call).key)
	})
	return parts
}

// names writes ids.
func names(list string) string { return strings.Trim(fmt.Sprint([]rune(list)), "[]") }

// String is a state for people.
func (s state) String() string {
	return fmt.Sprintf("%s %d %s(%d) taken[%s] handled %d waits %t done %t by %d asked[%s] told[%s] kept[%s] known[%s] loose[%s]",
		s.phase, s.gen, kinds[s.what.flow].name, s.what.value, names(s.taken), s.handled, s.waits, s.done, s.by,
		names(s.asked), names(s.told), names(s.kept), names(s.known), names(s.loose))
}

// describe is an operation for people.
func describe(c call, a answer) string {
	out := fmt.Sprintf("%s %s", c.verb, c.key)
	switch c.verb {
	case doStart:
		out += fmt.Sprintf(" %s(%d)", kinds[c.what.flow].name, c.what.value)
	case doJob, doWait:
		out += fmt.Sprintf(" gen %d", c.gen)
	case doSignal, doSignalAll, doInterrupt:
		out += fmt.Sprintf(" %d", c.id)
	}
	if c.once != 0 {
		out += fmt.Sprintf(" once %d", c.once)
	}
	return out + " → " + a.String()
}

// String is an answer for people.
func (a answer) String() string {
	switch {
	case a.unknown:
		return "unknown"
	case a.notFound:
		return "not found"
	case a.already:
		return fmt.Sprintf("already gen %d, same flow %t, same input %t", a.gen, a.sameFlow, a.sameInput)
	case a.signal != "":
		return fmt.Sprintf("%s, reached %d, duplicate %t", a.signal, a.reached, a.duplicate)
	case a.seen.phase != "":
		v := a.seen
		return fmt.Sprintf("%s, done %t, waits %t, handled %d, taken[%s], by %d", v.phase, v.done, v.waits, v.handled, names(v.taken), v.by)
	}
	return fmt.Sprintf("gen %d, duplicate %t", a.gen, a.duplicate)
}
