package sim

import (
	"math/rand/v2"
	"time"
)

// features are what a world has besides what all worlds have. Each is in few seeds, so that
// worlds stay cheap and features meet in many ways. They have their own dice.
type features struct {
	verify    bool          // effects have verifiers
	storm     int           // how many messages are sent a hundred times (F12)
	flips     int           // how many messages come again with one bit flipped (F17)
	flipped   int           // how many have come so
	least     bool          // batch, pool and prefetch are at their minimum (F16)
	partition int           // how often a process is cut off from the store or the bus (F11)
	doubt     bool          // effects have verifiers, and the outside often does not answer
	late      bool          // calls of a delivery fail, or acks are done and reported as failed
	hold      time.Duration // of a partition, at most
	forks     int           // how many jobs go on from entries of others, at most (O12)
	resumes   int           // how many jobs that failed or were interrupted are resumed, at most
	cuts      map[int]cut   // present ones, by slot
	drains    int           // how often a process is asked to stop, while the next one begins (T10)
}

// content is what the flows of a book have, besides what all have.
type content struct {
	small  bool // few jobs of few activities: more worlds are played in the time
	bank   bool // effects of class Tx, with what follows them
	expire bool // jobs end for good, and their keys are used again (P29)
	large  bool // inputs and outputs that are too large for a message (E6)
	flurry bool // signals come close together to a hook that repeats (C6, P2)
}

// A bus of the smallest messages that are allowed, and a payload that does not fit.
const (
	smallest = 8 << 10
	large    = smallest/2 + 100
)

// drawContent draws it for the book of a seed.
func drawContent(seed uint64) (c content) {
	n := seed / share
	c.small = rand.New(rand.NewPCG(n, 9)).IntN(10) > 0 //nolint:gosec // it must be repeatable
	dice := rand.New(rand.NewPCG(n, 4))                //nolint:gosec // it must be repeatable
	c.bank = dice.IntN(5) == 0
	c.expire = dice.IntN(10) == 0
	c.large = dice.IntN(12) == 0
	c.flurry = flurried(n)
	return c
}

// flurried picks one of every ten books in a row: what goes wrong between two passes
// shows nowhere else, and so no long stretch of seeds is to be without.
func flurried(n uint64) bool {
	dice := rand.New(rand.NewPCG(n/10, 7)) //nolint:gosec // it must be repeatable
	return dice.Uint64N(10) == n%10
}

func (w *world) maxPayload() int {
	if drawContent(w.seed).large {
		return smallest
	}
	return 0 // the bus's own
}

func (w *world) drawFeatures() {
	w.cuts = map[int]cut{}
	dice := rand.New(rand.NewPCG(w.seed, 3)) //nolint:gosec // it must be repeatable
	one := func(in int) bool { return dice.IntN(in) == 0 }
	f := &w.features
	f.verify = one(4)
	if one(16) {
		f.storm = 1 + dice.IntN(2)
	}
	if one(8) {
		f.flips = 1 + dice.IntN(12)
	}
	f.least = one(16)
	if one(5) {
		f.partition = 1 + dice.IntN(3)
		f.hold = time.Duration(1+dice.IntN(10)) * time.Second
	}
	f.late = one(4)
	if f.doubt = one(10); f.doubt {
		f.verify = true
	}
	dice = rand.New(rand.NewPCG(w.seed, 11)) //nolint:gosec // it must be repeatable
	if one(6) {
		f.forks = 1 + dice.IntN(3)
	}
	if one(6) && !drawContent(w.seed).expire {
		f.resumes = 1 + dice.IntN(3)
	}
	if dice = rand.New(rand.NewPCG(w.seed, 13)); one(4) { //nolint:gosec // it must be repeatable
		f.drains = 1 + dice.IntN(3)
	}
	if w.weather.mild {
		f.partition, f.late, f.doubt, f.drains = 0, false, false, 0
	}
}

// feature gives the processes what concerns them.
func (w *world) feature() {
	if drawContent(w.seed).flurry {
		w.race(rand.New(rand.NewPCG(w.seed, 8))) //nolint:gosec // it must be repeatable
	}
	if w.features.least {
		for _, p := range w.processes {
			p.role = leastRole(p.role)
		}
	}
	dice := rand.New(rand.NewPCG(w.seed, 15)) //nolint:gosec // it must be repeatable
	for _, p := range w.processes {
		switch p.role.early = dice.IntN(2) == 0; {
		case p.role.early: // in a mode in which something can be
			p.role.local, p.role.slots = true, max(p.role.slots, 2+dice.IntN(3))
			p.role.cfg.Stepwise, p.role.cfg.NoFold = false, false
		default:
			p.role.cfg.NoFollow = dice.IntN(2) == 0
		}
	}
	w.partitions(rand.New(rand.NewPCG(w.seed, 6))) //nolint:gosec // it must be repeatable
	w.drain(rand.New(rand.NewPCG(w.seed, 14)))     //nolint:gosec // it must be repeatable
}

// race makes most processes race; the others meet what they leave half done with
// whole plans.
func (w *world) race(dice *rand.Rand) {
	for _, p := range w.processes {
		if dice.IntN(4) > 0 {
			p.role = racingRole(p.role)
		}
	}
}
