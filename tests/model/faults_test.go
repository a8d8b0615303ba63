package model

import (
	"fmt"
	"sync/atomic"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// faults are what befalls the messages and the commits of a world.
type faults struct {
	Seed                     uint64
	Loss, Duplicate, Reorder float64
	Store                    int      // one call of the store in so many fails; 0: none
	Wipe                     bool     // the bus loses everything, once
	Restarts                 int      // how often a process ends and another one takes its place
	Early                    bool     // some signals come before they are waited for
	Engines                  []string // the modes of the engines
}

// modes are how an engine cuts and joins plans (C11).
var modes = map[string]engine.Config{
	"fold": {}, "nofold": {NoFold: true}, "stepwise": {Stepwise: true}, "one": {MaxBatch: 1, Committers: 1}, "cold": {HotBytes: -1},
	modeEarly: {},
}

// modeEarly hands requests over, and begins early (W7, L4).
const modeEarly = "early"

// worlds are the sets of modes that are tested apart.
var worlds = map[string][]string{
	"fold": {"fold"}, "nofold": {"nofold"}, "stepwise": {"stepwise"}, "early": {modeEarly},
	"mixed": {"fold", "nofold", "stepwise", "one", "cold", modeEarly},
}

// drawFaults draws a world with one or two engines of the given modes.
func drawFaults(t *rapid.T, of []string) faults {
	f := faults{Seed: uint64(soak.Evenly(t, "seed", 1<<16))} //nolint:gosec // it is positive
	share := func(label string, shares ...float64) float64 { return shares[soak.Evenly(t, label, len(shares)-1)] }
	if soak.Evenly(t, "faults", 3) > 0 {
		f.Loss = share("loss", 0, 0.05, 0.2)
		f.Duplicate = share("duplicate", 0, 0.3)
		f.Reorder = share("reorder", 0, 0.3)
		f.Store = []int{0, 0, 23}[soak.Evenly(t, "store", 2)]
		f.Wipe = soak.Evenly(t, "wipe", 9) == 9
		f.Restarts = []int{0, 0, 3}[soak.Evenly(t, "restarts", 2)]
	}
	f.Early = soak.Evenly(t, "early", 1) == 1
	for range 1 + soak.Evenly(t, "engines", 1) {
		f.Engines = append(f.Engines, of[soak.Evenly(t, "mode", len(of)-1)])
	}
	return f
}

// fault makes calls of the store fail, before or after they did what they do,
// until it is quiet.
func (f *faults) fault(quiet *atomic.Bool) func(op string) error {
	if f.Store == 0 {
		return nil
	}
	var calls atomic.Uint64
	calls.Store(f.Seed)
	return func(op string) error {
		if quiet.Load() || calls.Add(1)%uint64(f.Store) != 0 { //nolint:gosec // it is positive
			return nil
		}
		return fmt.Errorf("%s: %w", op, store.ErrUnavailable)
	}
}
