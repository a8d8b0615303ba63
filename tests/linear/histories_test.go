package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// The calls and answers of hand-written histories, all of one key.
var (
	two        = call{id: 100, verb: doStart, what: start{0, 0}}
	twoOther   = call{id: 102, verb: doStart, what: start{0, 1}}
	three      = call{id: 104, verb: doStart, what: start{1, 0}}
	brief      = call{id: 106, verb: doStart, what: start{2, 0}}
	find       = call{verb: doFind}
	begun      = answer{gen: 1}
	there      = answer{gen: 1, already: true, sameFlow: true, sameInput: true}
	none       = answer{notFound: true}
	unknown    = answer{unknown: true}
	kept       = answer{signal: store.SignalKept}
	consumed   = answer{signal: store.SignalConsumed, reached: 1}
	missed     = answer{signal: store.SignalMissed}
	asked      = answer{gen: 1}
	askedAgain = answer{gen: 1, duplicate: true}
)

func sig(id, once rune) call    { return call{id: id, verb: doSignal, once: once} }
func sigAll(id rune) call       { return call{id: id, verb: doSignalAll} }
func intr(id, once rune) call   { return call{id: id, verb: doInterrupt, once: once} }
func job(gen int) call          { return call{verb: doJob, gen: gen} }
func wait(gen int) call         { return call{verb: doWait, gen: gen} }
func again(a answer) answer     { a.duplicate, a.reached = true, 0; return a }
func saw(v view) answer         { return answer{seen: v} }
func isOpen(handled int) answer { return saw(view{phase: open, handled: handled}) }
func waiting(handled int) answer {
	return saw(view{phase: open, handled: handled, waits: true})
}

func ended(taken string) answer {
	return saw(view{phase: completed, done: true, handled: len([]rune(taken)), taken: taken})
}

func stopped(handled int, by rune) answer {
	return saw(view{phase: interrupted, done: true, handled: handled, by: by})
}

// did is one operation of a history; those without times follow each other.
type did struct {
	call     call
	said     answer
	from, to int64
}

// history gives operations their times, each a client of its own.
func history(ops []did) (out []porcupine.Operation) {
	for i, o := range ops {
		if o.to == 0 {
			o.from, o.to = int64(10*i+10), int64(10*i+15)
		}
		o.call.key = "k"
		out = append(out, porcupine.Operation{ClientId: i, Input: o.call, Call: o.from, Output: o.said, Return: o.to})
	}
	return out
}

type example struct {
	name string
	ops  []did
}

func check(t *testing.T, ops []did, want porcupine.CheckResult) {
	t.Helper()
	h := history(ops)
	require.Equal(t, want, porcupine.CheckOperationsTimeout(model(h), h, time.Minute))
}

// accepted is what clients may see.
var accepted = []example{
	{"a job and its signals", []did{
		{call: find, said: none},
		{call: two, said: begun},
		{call: two, said: there},
		{call: job(1), said: waiting(0)},
		{call: sig(2, 0), said: consumed},
		{call: job(1), said: isOpen(0)},
		{call: job(1), said: waiting(1)},
		{call: sig(4, 0), said: consumed},
		{call: wait(1), said: saw(view{phase: completed, done: true, taken: "\x02\x04"})},
		{call: job(1), said: ended("\x02\x04")},
		{call: find, said: begun},
	}},
	{"what differs of a second start", []did{
		{call: two, said: begun},
		{call: twoOther, said: answer{gen: 1, already: true, sameFlow: true}},
		{call: three, said: answer{gen: 1, already: true, sameInput: true}},
	}},
	{"signals before the job, in their order", []did{
		{call: sig(2, 0), said: kept}, {call: sig(4, 0), said: kept}, {call: two, said: begun}, {call: job(1), said: ended("\x02\x04")},
	}},
	{"an idempotent signal, kept and then consumed", []did{
		{call: sig(2, 9), said: kept},
		{call: sig(4, 9), said: again(kept)},
		{call: two, said: begun},
		{call: sig(4, 9), said: again(consumed)},
		{call: job(1), said: waiting(1)},
	}},
	{"a signal to all", []did{
		{call: sigAll(2), said: missed}, {call: two, said: begun}, {call: sigAll(4), said: consumed}, {call: job(1), said: waiting(1)},
	}},
	{"a signal that fails", []did{
		{call: two, said: begun},
		{call: sig(3, 0), said: consumed},
		{call: job(1), said: saw(view{phase: failed, done: true, handled: 1, by: 3})},
	}},
	{"an interrupt takes its time", []did{
		{call: two, said: begun},
		{call: intr(2, 9), said: asked},
		{call: intr(4, 9), said: askedAgain},
		{call: job(1), said: waiting(0)},
		{call: job(1), said: stopped(0, 2)},
		{call: intr(6, 0), said: asked},
		{call: job(1), said: stopped(0, 2)},
	}},
	{"a job that completes before its interrupt is taken", []did{
		{call: two, said: begun},
		{call: sig(2, 0), said: consumed},
		{call: intr(8, 0), said: asked},
		{call: sig(4, 0), said: consumed},
		{call: job(1), said: ended("\x02\x04")},
	}},
	{"a key is used again", []did{
		{call: brief, said: begun},
		{call: sig(2, 0), said: consumed},
		{call: job(1), said: ended("\x02")},
		{call: job(1), said: saw(view{phase: expired, done: true})},
		{call: find, said: none},
		{call: brief, said: answer{gen: 2}},
		{call: job(1), said: none},
		{call: find, said: answer{gen: 2}},
	}},
	{"starts at the same time", []did{
		{two, begun, 10, 50}, {two, there, 10, 50}, {find, none, 10, 20}, {find, begun, 15, 50},
	}},
	{"a start of unknown outcome, that was never", []did{{call: two, said: unknown}, {call: find, said: none}, {call: find, said: none}}},
	{"a start of unknown outcome, that comes late", []did{
		{call: two, said: unknown}, {call: find, said: none}, {call: find, said: begun}, {call: two, said: there},
	}},
	{"a signal of unknown outcome", []did{
		{call: two, said: begun},
		{call: sig(2, 9), said: unknown},
		{call: job(1), said: waiting(0)},
		{call: job(1), said: waiting(1)},
		{call: sig(2, 9), said: again(consumed)},
	}},
}

// refused is what no client may see. Most were made of one above by one lie.
var refused = []example{
	{"an acknowledged start is lost", []did{{call: two, said: begun}, {call: find, said: none}}},
	{"an acknowledged start is lost and made again", []did{{call: two, said: begun}, {call: two, said: begun}}},
	{"a start says that it is there, and it is not", []did{{call: two, said: there}}},
	{"two starts at the same time both began", []did{{two, begun, 10, 50}, {two, begun, 10, 50}}},
	{"a second start is told of another input", []did{{call: two, said: begun}, {call: twoOther, said: there}}},
	{"a read before any start", []did{{call: find, said: begun}, {call: two, said: begun}}},
	{"a job that is kept for good expires", []did{
		{call: two, said: begun}, {call: intr(2, 0), said: asked}, {call: job(1), said: stopped(0, 2)}, {call: find, said: none},
	}},
	{"one idempotency key, two effects", []did{
		{call: two, said: begun}, {call: sig(2, 9), said: consumed}, {call: sig(4, 9), said: consumed},
	}},
	{"one idempotency key, two kept signals", []did{
		{call: sig(2, 9), said: kept}, {call: sig(4, 9), said: again(kept)}, {call: two, said: begun}, {call: job(1), said: ended("\x02\x04")},
	}},
	{"a duplicate of nothing", []did{{call: sig(2, 9), said: again(kept)}}},
	{"a signal that was acknowledged is lost", []did{
		{call: two, said: begun}, {call: sig(2, 0), said: consumed}, {call: job(1), said: waiting(0)},
	}},
	{"a kept signal is lost", []did{
		{call: sig(2, 0), said: kept},
		{call: two, said: begun},
		{call: sig(4, 0), said: consumed},
		{call: sig(6, 0), said: consumed},
		{call: job(1), said: ended("\x04\x06")},
	}},
	{"kept signals change places", []did{
		{call: sig(2, 0), said: kept}, {call: sig(4, 0), said: kept}, {call: two, said: begun}, {call: job(1), said: ended("\x04\x02")},
	}},
	{"a signal is consumed twice", []did{{call: two, said: begun}, {call: sig(2, 0), said: consumed}, {call: job(1), said: ended("\x02\x02")}}},
	{"a signal is consumed by no job", []did{{call: sig(2, 0), said: consumed}}},
	{"a job completes without its signals", []did{{call: two, said: begun}, {call: sig(2, 0), said: consumed}, {call: job(1), said: ended("\x02")}}},
	{"a missed signal is consumed later", []did{
		{call: sigAll(2), said: missed}, {call: two, said: begun}, {call: job(1), said: waiting(1)},
	}},
	{"completed, then open", []did{
		{call: sig(2, 0), said: kept},
		{call: sig(4, 0), said: kept},
		{call: two, said: begun},
		{call: job(1), said: ended("\x02\x04")},
		{call: job(1), said: isOpen(1)},
	}},
	{"interrupted, then completed", []did{
		{call: two, said: begun},
		{call: sig(2, 0), said: consumed},
		{call: intr(8, 0), said: asked},
		{call: job(1), said: stopped(1, 8)},
		{call: sig(4, 0), said: kept},
		{call: job(1), said: ended("\x02\x04")},
	}},
	{"interrupted by nobody", []did{{call: two, said: begun}, {call: job(1), said: stopped(0, 8)}}},
	{"interrupted by what came later", []did{
		{call: two, said: begun},
		{call: intr(2, 0), said: asked},
		{call: job(1), said: stopped(0, 2)},
		{call: intr(4, 0), said: asked},
		{call: job(1), said: stopped(0, 4)},
	}},
	{"an idempotent interrupt, twice", []did{{call: two, said: begun}, {call: intr(2, 9), said: asked}, {call: intr(4, 9), said: asked}}},
	{"an interrupt finds nothing", []did{{call: two, said: begun}, {call: intr(2, 0), said: none}}},
	{"an older state after a newer one, by another client", []did{
		{two, begun, 10, 15},
		{sig(2, 0), consumed, 20, 90},
		{job(1), waiting(1), 30, 40},
		{job(1), waiting(0), 50, 60},
	}},
	{"an older state while the signal is under way is none, but its end is", []did{
		{two, begun, 10, 15},
		{sig(2, 0), consumed, 20, 40},
		{job(1), waiting(0), 50, 60},
	}},
	{"an end without its tasks, after the end with them", []did{
		{call: two, said: begun},
		{call: intr(2, 0), said: asked},
		{call: job(1), said: stopped(0, 2)},
		{call: job(1), said: saw(view{phase: interrupted, by: 2})},
	}},
	{"an expired job comes back", []did{
		{call: brief, said: begun}, {call: intr(2, 0), said: asked}, {call: find, said: none}, {call: job(1), said: stopped(0, 2)},
	}},
	{"a key is used again under the same generation", []did{
		{call: brief, said: begun}, {call: intr(2, 0), said: asked}, {call: find, said: none}, {call: brief, said: begun},
	}},
	{"the second job has the first one's interrupt", []did{
		{call: brief, said: begun}, {call: intr(2, 0), said: asked}, {call: brief, said: answer{gen: 2}}, {call: job(2), said: stopped(0, 2)},
	}},
	{"a start of unknown outcome has two effects", []did{
		{call: brief, said: unknown},
		{call: find, said: begun},
		{call: intr(2, 0), said: asked},
		{call: find, said: none},
		{call: find, said: answer{gen: 2}},
	}},
	{"an unknown signal has two effects", []did{
		{call: two, said: begun}, {call: sig(2, 0), said: unknown}, {call: job(1), said: ended("\x02\x02")},
	}},
	{"the effect of an unknown start is before its call", []did{{call: find, said: begun}, {call: two, said: unknown}}},
	{"what was refused has an effect", []did{{call: find, said: begun}}},
}

// I9: the checker lets pass what is right, and only that.
func TestI9Checker(t *testing.T) {
	t.Parallel()
	for _, c := range accepted {
		t.Run(c.name, func(t *testing.T) { check(t, c.ops, porcupine.Ok) })
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) { check(t, c.ops, porcupine.Illegal) })
	}
}
