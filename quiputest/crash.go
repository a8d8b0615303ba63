package quiputest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of CrashEverywhere.
const (
	// DefaultBoundaries is the default of Boundaries.
	DefaultBoundaries = 200
	// maxSteps bounds how many boundaries all plays of a long scenario pass together: each
	// play passes every boundary.
	maxSteps = 150_000
	// maxFailed is the number of failed boundaries after which the rest is left out.
	maxFailed = 5
)

// crashConfig has the options of CrashEverywhere alone.
type crashConfig struct {
	limit   int
	limited bool // by the test
	seed    uint64
	seeded  bool
	parked  func(w *World, d *DeadLetter)
	allowed bool
	ignored []string
}

// Boundaries is how many boundaries CrashEverywhere tries at most; where there are no
// more, it tries all. Of more it draws as many, by a seed that is logged. Half of them
// are the first or the last one of those that are alike: a loop has boundaries that
// differ in a number only, that of the turn or the call, or in a name or a key.
//
// Without this option they are DefaultBoundaries, and fewer for a scenario with
// thousands, since each play comes by all of them: as many as come by 150 000 together.
// The first and the last one of those that are alike are among them then.
func Boundaries(n int) Option {
	return func(c *config) { c.crashes.limit, c.crashes.limited = n, true }
}

// Seed makes CrashEverywhere draw the same boundaries again.
func Seed(seed uint64) Option {
	return func(c *config) { c.crashes.seed, c.crashes.seeded = seed, true }
}

// OnParked answers, in a person's place, the dead letter of a request that was parked because its
// process died: its effect is Guarded and may have been done (3.2). DeadLetter.Effect is the
// effect in doubt. Look at the receiver, and answer with Done or Retry.
func OnParked(answer func(w *World, d *DeadLetter)) Option {
	return func(c *config) { c.crashes.parked = answer }
}

// AllowParked accepts that a cut-off Guarded effect needs a person: such boundaries are reported
// as skipped, not failed.
func AllowParked() Option { return func(c *config) { c.crashes.allowed = true } }

// Ignore leaves members with these names, at any depth of outputs and results, out of the
// comparison. Use it for times, for example: a death delays.
func Ignore(members ...string) Option {
	return func(c *config) { c.crashes.ignored = append(c.crashes.ignored, members...) }
}

// CrashEverywhere checks that the handlers of a scenario give the same result wherever their
// process dies. It first plays the scenario undisturbed and records every boundary: when a
// request comes; for each effect, before and after its start is recorded, after its body, and
// after its end is recorded; after each request to a Receiver; before and after a response is
// sent, also when a function suspends and wakes. Then it plays the scenario once for each
// boundary, or for those that are drawn where there are many (Boundaries), and the worker
// process dies there: none of its calls has an effect any more, its
// handlers end, what it held is free after some seconds of the world's time, and another process
// takes its place. Every run must have the jobs' ends and outputs, effects, undos and receivers'
// actions of the undisturbed run, and pass the scenario's own checks.
//
// Each boundary is a numbered subtest, so that -run can repeat it. The scenario is played many
// times: it must make what it needs itself, and take the same way each time. A cut-off Guarded
// effect needs a person: see OnParked and AllowParked.
func CrashEverywhere(t *testing.T, scenario Scenario, options ...Option) {
	t.Helper()
	cfg := configure(options)
	crashEverywhere(stage{t}, &cfg, scenario)
}

func crashEverywhere(h host, cfg *config, scenario Scenario) {
	h.Helper()
	if cfg.crashes.limit < 1 {
		h.Fatalf("quiputest.Boundaries(%d): at least one has to be tried", cfg.crashes.limit)
	}
	calm := newCrash()
	h.bubble(func(t testing.TB) { play(t, cfg, calm, scenario) })
	switch {
	case calm.outcome == nil:
		h.Skip("the scenario was skipped")
	case len(calm.seen) == 0:
		h.Fatal("no handler ran: there is nothing that could die")
	}
	// Sorted by request, so that a boundary has the same number each time.
	slices.SortStableFunc(calm.seen, func(a, b boundary) int { return strings.Compare(a.request, b.request) })
	chosen := cfg.crashes.choose(h, calm.seen)
	var died, failed, parked int
	for n, i := range chosen {
		a := &attempt{at: &calm.seen[i], calm: calm}
		passed := h.part(fmt.Sprintf("%03d", i+1), func(h host) { a.try(h, cfg, scenario) })
		if a.last != nil && !a.last.died().IsZero() {
			died++
		}
		if a.last != nil && a.last.person != "" {
			parked++
		}
		if !passed {
			failed++
		}
		if failed == maxFailed && n+1 < len(chosen) {
			h.Errorf("%d boundaries failed, the %d after them were not tried", failed, len(chosen)-n-1)
			return
		}
	}
	h.Logf("died at %d of %d boundaries: %d failed, at %d a person is needed", died, len(calm.seen), failed, parked)
}

// crash is one run of a scenario in which a process may die.
type crash struct {
	at        *boundary       // nil: the process does not die, and boundaries are recorded
	scenarios map[string]bool // requests that got a dead letter in the undisturbed run

	mu       sync.Mutex
	requests map[journal.GUID]string   // names of those that have come
	stands   map[journal.GUID]string   // where the functions stand that have suspended
	keys     map[string]map[string]int // of what is called the same in a request
	known    map[place]bool
	seen     []boundary
	victim   journal.GUID // the request during which the process died; zero: none

	outcome   *outcome
	letters   map[string]bool // requests that got a dead letter
	attending bool
	person    string // what a person must decide about the cut-off effect; "" nothing
	stuck     string // another reason why that request cannot go on; "" none
}

func newCrash() *crash {
	return &crash{
		requests: map[journal.GUID]string{}, stands: map[journal.GUID]string{}, keys: map[string]map[string]int{},
		known: map[place]bool{},
	}
}

// reach records that a boundary is reached, and says whether the process dies there.
func (c *crash) reach(b boundary) (dies bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		if !c.known[b.place] {
			c.known[b.place] = true
			c.seen = append(c.seen, b)
		}
		return false
	}
	if !c.victim.IsZero() || b.place != c.at.place {
		return false
	}
	c.victim = b.id
	return true
}

// died returns the request during which the process died, zero if it did not.
func (c *crash) died() journal.GUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.victim
}

// attempt is the trial of one boundary.
type attempt struct {
	at   *boundary
	calm *crash // the undisturbed run
	last *crash // the last run with a death; nil: there was none
}

// maxPlays bounds how often a scenario is played until it reaches a boundary.
const maxPlays = 3

// try plays the scenario with a death and compares the results.
func (a *attempt) try(h host, cfg *config, scenario Scenario) {
	h.Helper()
	h.Logf("the process dies for %s", a.at.text())
	for n := 0; n < maxPlays && (n == 0 || a.last.died().IsZero()); n++ {
		a.last = newCrash()
		a.last.at, a.last.scenarios = a.at, a.calm.letters
		h.bubble(func(t testing.TB) { play(t, cfg, a.last, scenario) })
	}
	switch c := a.last; {
	case c.stuck != "":
		h.Errorf("its request cannot go on: %s", c.stuck)
	case c.person != "" && cfg.crashes.allowed:
		h.Skipf("a person is needed: %s", c.person)
	case c.person != "":
		h.Errorf("a person is needed: %s\nAnswer in its place (OnParked), say that it is right so (AllowParked), or make the effect Idempotent or verified", c.person)
	case c.died().IsZero() && a.at.chance:
		h.Skip("no other run came by there: what it waits for came together, or a branch of First lost")
	case c.died().IsZero():
		h.Errorf("no other run came by there: the scenario does not take the same way each time")
	case c.outcome == nil:
		h.Errorf("the scenario ended early, and did not fail")
	default:
		for _, line := range a.calm.outcome.differences(c.outcome, cfg.crashes.ignored) {
			h.Errorf("%s", line)
		}
	}
}

// attend looks after the request during which the process died: its dead letter is answered or
// ends the scenario.
func (w *World) attend() {
	c := w.crash
	if c == nil || c.at == nil || c.attending || c.died().IsZero() || c.scenarios[c.at.request] {
		return
	}
	w.t.Helper()
	for _, d := range w.DeadLetters() {
		if d.row != c.died() {
			continue
		}
		if d.Class() != wire.ClassParked {
			c.stuck = d.Message
			w.t.SkipNow()
		}
		if answer := w.cfg.crashes.parked; answer != nil {
			c.attending = true
			answer(w, d)
			c.attending = false
		}
		if slices.ContainsFunc(w.DeadLetters(), func(x *DeadLetter) bool { return x.ID == d.ID }) {
			c.person = d.Message
			w.t.SkipNow()
		}
	}
}

// note records the results of the run, and marks boundaries that another run may miss although
// the scenario takes the same way: in a branch of First that lost, and after a function woke,
// which may find two events at once that came one after the other here.
func (w *World) note(c *crash) {
	w.t.Helper()
	c.outcome, c.letters = w.outcome(), w.lettered()
	won := w.winners()
	for i := range c.seen {
		b := &c.seen[i]
		b.chance = b.turn > 1 || won.lost(b.id, b.position)
	}
}

// lettered returns the requests that got a dead letter, including ended ones.
func (w *World) lettered() map[string]bool {
	w.t.Helper()
	out := map[string]bool{}
	views, err := w.store.DeadLetters(context.Background(), store.DeadFilter{All: true, Limit: store.MaxPage})
	if err != nil {
		w.t.Fatalf("list the dead letters: %v", err)
	}
	w.crash.mu.Lock()
	defer w.crash.mu.Unlock()
	for i := range views {
		out[w.crash.requests[views[i].Letter.Row]] = true
	}
	return out
}
