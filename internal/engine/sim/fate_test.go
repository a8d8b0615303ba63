package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// weather is how bad the faults of a seed are. Each kind has its own strength in each seed and is
// absent in many, so that rare combinations happen somewhere.
type weather struct {
	refuse    float64 // a call is not carried out and says so
	lie       float64 // a call is carried out and reported as failed (F3)
	loseAck   float64 // K16
	crash     float64 // the process dies before or after a call (F1)
	crashes   int     // at most
	pause     float64 // the process hangs (F2)
	pauses    int
	stall     float64 // one call takes long
	stalls    int
	reject    float64 // the database refuses the data of a batch of several
	loss      float64
	duplicate float64
	reorder   float64
	delay     time.Duration
	wipes     int           // how often the bus loses everything (F10)
	skew      time.Duration // between the database's clock and all others (F14)
	calmAfter time.Duration
	mild      bool // only messages are lost
	ownFlows  bool // every engine reads the flows through the gate
}

func (w *world) drawWeather() weather {
	share := func(of ...float64) float64 { return of[w.dice.IntN(len(of))] }
	f := weather{
		refuse: share(0, 0, 0.01, 0.05), lie: share(0, 0, 0.01, 0.05), loseAck: share(0, 0, 0.02, 0.2),
		crash: share(0, 0.003, 0.01, 0.03), crashes: 1 + w.dice.IntN(5),
		pause: share(0, 0, 0.003, 0.01), pauses: 1 + w.dice.IntN(3),
		stall: share(0, 0, 0.003, 0.02), stalls: 1 + w.dice.IntN(4),
		reject: share(0, 0, 0, 0.05),
		loss:   share(0, 0, 0.05, 0.2), duplicate: share(0, 0, 0.3, 0.8), reorder: share(0, 0, 0.3),
		delay:     []time.Duration{50 * time.Millisecond, 3 * time.Second, 25 * time.Second}[w.dice.IntN(3)],
		skew:      []time.Duration{0, 0, time.Hour, -time.Hour}[w.dice.IntN(4)],
		calmAfter: w.between(3*time.Second, 20*time.Second),
		ownFlows:  w.dice.IntN(16) == 0,
	}
	if w.dice.IntN(4) == 0 {
		f.wipes = 1 + w.dice.IntN(2)
	}
	switch w.dice.IntN(8) {
	case 0: // of messages only
		f.refuse, f.lie, f.crashes, f.pauses, f.stalls, f.reject, f.mild = 0, 0, 0, 0, 0, 0, true
	case 1: // none at all, now and then
		if w.dice.IntN(2) == 0 {
			f = weather{calmAfter: time.Second, mild: true}
		}
	}
	return f
}

// modes are the ways in which an engine cuts and joins plans (C11).
var modes = []engine.Config{{}, {NoFold: true}, {Stepwise: true}}

// drawRoles draws the processes besides the clients: one to three, in different modes, with
// batches and pools from their minimum on (F16).
func (w *world) drawRoles() []role {
	roles := make([]role, 1+w.dice.IntN(3))
	for i := range roles {
		cfg := modes[w.dice.IntN(len(modes))]
		small := func(most int) int { return 1 + w.dice.IntN(most) }
		cfg.Committers = small(2)
		cfg.MaxBatch = []int{1, 2, 8, 500}[w.dice.IntN(4)]
		cfg.LaneSlots, cfg.StartSlots = small(8), small(8)
		cfg.Resend, cfg.Sweep = resend, time.Second
		cfg.HotBytes = []int{0, 0, 4 << 10, -1}[w.dice.IntN(4)] // all, a few, none
		roles[i] = role{cfg: cfg, slots: small(4), engine: true, workers: true, local: w.dice.IntN(2) == 0}
		if len(roles) > 1 {
			switch w.dice.IntN(4) {
			case 0:
				roles[i].engine = i == 0
			case 1:
				roles[i].workers = i == 0
			}
		}
	}
	return roles
}

// leastRole sets everything of a process to its minimum (F16).
func leastRole(r role) role {
	r.slots, r.cfg.Committers, r.cfg.MaxBatch, r.cfg.LaneSlots, r.cfg.StartSlots = 1, 1, 1, 1, 1
	return r
}

// racingRole lets an engine handle several messages at once and commit each step alone, so that
// something can happen between two steps of a message.
func racingRole(r role) role {
	r.cfg.NoFold, r.cfg.Stepwise = false, true
	r.cfg.Committers, r.cfg.LaneSlots = 2, max(r.cfg.LaneSlots, 4)
	return r
}

// cut is a partition: a process does not reach the store or the bus. With deaf its calls arrive,
// but the answers do not (F11).
type cut struct {
	store, bus, deaf bool
}

func (c cut) severs(k kind) bool {
	switch k {
	case kindRead, kindWrite, kindCommit:
		return c.store
	case kindSend, kindFinish, kindKeep:
		return c.bus
	}
	return false
}

func (c cut) fate(k kind) fate {
	switch {
	case k == kindRead:
		return fate{verdict: verdict{err: errStore}, word: "is cut off at"}
	case (k == kindWrite || k == kindCommit) && c.deaf:
		return fate{verdict: verdict{do: true, err: errLie}, word: "is cut off after"}
	case k == kindWrite || k == kindCommit:
		return fate{verdict: verdict{err: errStore}, word: "is cut off at"}
	}
	return fate{verdict: verdict{do: c.deaf, err: errBus}, word: "is cut off at"}
}

// partitions cuts processes off for a while each, including the clients.
func (w *world) partitions(dice *rand.Rand) {
	for range w.features.partition {
		slot := dice.IntN(len(w.processes))
		c := cut{deaf: dice.IntN(2) == 0}
		if c.store = dice.IntN(2) == 0; !c.store || dice.IntN(4) == 0 {
			c.bus = true
		}
		begin := time.Duration(dice.Int64N(int64(6 * time.Second)))
		w.after(begin, func() { w.cuts[slot] = c })
		w.after(begin+time.Duration(dice.Int64N(int64(w.features.hold))), func() { delete(w.cuts, slot) })
	}
}

// fate is a verdict, and what happens to the process.
type fate struct {
	verdict
	die, halt bool
	stall     time.Duration
	word      string // for the log
}

// lies is the word for a call that is done and reported as failed.
const lies = "does and says it failed"

// unanswered is the share of calls outside whose answer is lost in worlds with doubt.
const unanswered = 0.2

var (
	done     = fate{verdict: verdict{do: true}, word: "does"}
	errStore = fmt.Errorf("simulated: %w", store.ErrUnavailable)
	errLie   = fmt.Errorf("simulated: %w", store.ErrUnknown)
	errData  = fmt.Errorf("simulated: %w", store.ErrRejected)
	errBus   = fmt.Errorf("simulated: %w", transport.ErrUnavailable)
	errThere = errors.New("simulated: no answer from outside")
)

// fate draws what happens to a call.
func (w *world) fate(c *call) fate {
	if w.killed(c) {
		return fate{die: true, word: "is killed by"}
	}
	if w.calm {
		return done
	}
	if cut := w.cuts[c.p.slot]; cut.severs(c.kind) {
		return cut.fate(c.kind)
	}
	f := &w.weather
	x := w.dice.Float64()
	hit := func(share float64) bool {
		x -= share
		return x < 0 && share > 0
	}
	client := c.p.slot == 0
	switch {
	case !client && f.crashes > 0 && hit(f.crash):
		f.crashes--
		if w.dice.IntN(2) == 0 {
			return fate{die: true, word: "dies before"}
		}
		return fate{verdict: verdict{do: true}, die: true, word: "dies after"}
	case !client && f.pauses > 0 && hit(f.pause):
		f.pauses--
		return fate{halt: true, word: "stands still before"}
	case f.stalls > 0 && hit(f.stall):
		f.stalls--
		return fate{stall: w.between(50*time.Millisecond, 8*time.Second), word: "stalls"}
	case c.kind == kindCommit && hit(f.reject):
		return fate{verdict: verdict{err: errData}, word: "refuses"}
	}
	return w.failure(c, hit)
}

// failure draws whether the call fails, and whether it was carried out then.
func (w *world) failure(c *call, hit func(float64) bool) fate {
	f := &w.weather
	var before, after error
	switch c.kind {
	case kindRead:
		before = errStore
	case kindWrite, kindCommit:
		before, after = errStore, errLie
	case kindSend:
		before, after = errBus, errBus
	case kindOutside:
		before, after = errThere, errThere
		if w.features.doubt && hit(unanswered) {
			return fate{verdict: verdict{do: true, err: after}, word: lies}
		}
	case kindFinish:
		if hit(f.loseAck) {
			return fate{word: "is lost"}
		}
		if w.features.late {
			after = errBus
		}
	case kindKeep:
		if w.features.late {
			before, after = errBus, errBus
		}
	}
	switch {
	case before != nil && hit(f.refuse):
		return fate{verdict: verdict{err: before}, word: "fails"}
	case after != nil && hit(f.lie):
		return fate{verdict: verdict{do: true, err: after}, word: lies}
	}
	return done
}
