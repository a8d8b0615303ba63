package quiputest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Scenario is a test in a world. t is the bubble's: use it, and not the one of the
// test around it. What testing.T has beyond testing.TB (Run, Parallel, Deadline)
// is not allowed in a bubble.
type Scenario func(t testing.TB, w *World)

// Run plays a scenario in a world of its own. Time is the bubble's
// (testing/synctest): it starts at midnight UTC of 2000-01-01 and passes, at once,
// whenever everybody waits, for time.Sleep and time.Now in handlers and in the
// scenario too. When the scenario has ended, what is under way is brought to rest,
// the processes drain, and the journal of every job is verified (World.Verify)
// unless NoVerify is given. A goroutine that the scenario or a handler leaves
// behind is a failure of the test, by synctest.
func Run(t *testing.T, scenario Scenario, options ...Option) {
	t.Helper()
	cfg := configure(options)
	stage{t}.bubble(func(t testing.TB) { play(t, &cfg, nil, scenario) })
}

// play runs a scenario in the bubble that it is called in. What is of interest at
// its end, if it came to it, is told to the crash.
func play(t testing.TB, cfg *config, c *crash, scenario Scenario) {
	t.Helper()
	w := open(t, cfg, c)
	defer w.close()
	scenario(t, w)
	if c != nil && !t.Failed() {
		w.Settle()
		w.note(c)
	}
}

// host is what scenarios are played on: a test.
type host interface {
	testing.TB
	// part runs a part of the test under a name of its own.
	part(name string, f func(host)) (passed bool)
	// bubble runs f in a bubble of time.
	bubble(f func(testing.TB))
}

// stage is a host that is a test.
type stage struct{ *testing.T }

func (s stage) part(name string, f func(host)) bool {
	return s.Run(name, func(t *testing.T) { f(stage{t}) })
}

func (s stage) bubble(f func(testing.TB)) {
	s.Helper()
	synctest.Test(s.T, func(t *testing.T) { f(t) })
}

// Option changes a world. The options that CrashEverywhere takes beside them say
// so; Run ignores those.
type Option func(*config)

// config is a world's configuration.
type config struct {
	patience time.Duration
	unproved bool
	lossy    bool
	seed     uint64 // of the bus
	begin    func(ctx context.Context) (tx any, end func(commit bool))
	crashes  crashConfig
}

// DefaultPatience is how long a wait waits.
const DefaultPatience = 366 * 24 * time.Hour

func configure(options []Option) config {
	c := config{patience: DefaultPatience, crashes: crashConfig{limit: DefaultBoundaries}}
	for _, o := range options {
		o(&c)
	}
	return c
}

// Patience is how long, by the world's clock, a wait waits before it fails;
// DefaultPatience. A wait for what nothing will bring about by itself fails after
// an hour.
func Patience(d time.Duration) Option { return func(c *config) { c.patience = d } }

// NoVerify leaves out the verification of the journals at the end.
func NoVerify() Option { return func(c *config) { c.unproved = true } }

// Lossy makes the bus lose, double and reorder messages, by a seed (T1): handlers
// then run more than once without any crash (C9).
func Lossy(seed uint64) Option {
	return func(c *config) { c.lossy, c.seed = true, seed }
}

// WithTx gives the bodies of effects of class Tx a handle of the test's own, since there
// is no SQL in a world; without it quipu.DoTx says that it has none. T is quipu.EffectTx
// for bodies of quipu.DoTx and quipu.HandleTx: say so where begin returns another type. begin
// begins a transaction for one run of one body; end is called once, with commit
// where the effect was recorded, otherwise to roll back.
func WithTx[T any](begin func(ctx context.Context) (tx T, end func(commit bool))) Option {
	return func(c *config) {
		c.begin = func(ctx context.Context) (any, func(bool)) { return begin(ctx) }
	}
}
