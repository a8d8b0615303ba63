package quiputest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Scenario is a test in a world. Use its t, which is the bubble's, and not that of the
// surrounding test. Methods that testing.T has beyond testing.TB (Run, Parallel, Deadline) are
// not allowed in a bubble.
type Scenario func(t testing.TB, w *World)

// Run plays a scenario in its own world. Time is the bubble's (testing/synctest): it starts at
// midnight UTC of 2000-01-01, and jumps ahead whenever every goroutine waits; that holds for
// time.Sleep and time.Now in handlers and in the scenario, too. At the end Run waits until
// nothing is under way, drains the processes, and verifies the journal of every job
// (World.Verify) unless NoVerify is given. synctest fails the test if the scenario or a handler
// leaves a goroutine behind.
func Run(t *testing.T, scenario Scenario, options ...Option) {
	t.Helper()
	cfg := configure(options)
	stage{t}.bubble(func(t testing.TB) { play(t, &cfg, nil, scenario) })
}

// play runs a scenario in the current bubble. If it reaches its end, its results go to c.
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

// host plays scenarios: a test.
type host interface {
	testing.TB
	// part runs a part of the test as a subtest.
	part(name string, f func(host)) (passed bool)
	// bubble runs f in a bubble of time.
	bubble(f func(testing.TB))
}

// stage is a host made of a test.
type stage struct{ *testing.T }

func (s stage) part(name string, f func(host)) bool {
	return s.Run(name, func(t *testing.T) { f(stage{t}) })
}

func (s stage) bubble(f func(testing.TB)) {
	s.Helper()
	synctest.Test(s.T, func(t *testing.T) { f(t) })
}

// Option changes a world. Run ignores the options that are only for CrashEverywhere.
type Option func(*config)

// config is a world's configuration.
type config struct {
	unproved bool
	lossy    bool
	seed     uint64 // of the bus
	begin    func(ctx context.Context) (tx any, end func(commit bool))
	standing int
	crashes  crashConfig
}

// patience is how long, by the world's clock, a wait lasts before it fails. A wait fails after an
// hour if the clock alone cannot bring what it waits for.
const patience = 366 * 24 * time.Hour

func configure(options []Option) config {
	c := config{standing: maxStanding, crashes: crashConfig{limit: DefaultBoundaries}}
	for _, o := range options {
		o(&c)
	}
	return c
}

// NoVerify skips the verification of the journals at the end.
func NoVerify() Option { return func(c *config) { c.unproved = true } }

// Lossy makes the bus lose, duplicate and reorder messages, by a seed (T1). Handlers then run
// more than once even without a crash (C9).
func Lossy(seed uint64) Option {
	return func(c *config) { c.lossy, c.seed = true, seed }
}

// WithTx gives bodies of Tx effects a handle of the test's own, since a world has no SQL; without
// it quipu.DoTx fails with ErrNoTx. begin starts a transaction for one run of one body. end is
// called once, with commit true if the effect was recorded and false to roll back. T must be
// quipu.EffectTx for bodies of quipu.DoTx and quipu.HandleTx: state it if begin returns another
// type.
func WithTx[T any](begin func(ctx context.Context) (tx T, end func(commit bool))) Option {
	return func(c *config) {
		c.begin = func(ctx context.Context) (any, func(bool)) { return begin(ctx) }
	}
}
