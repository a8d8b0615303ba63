package quiputest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// recorder is a host that records what a test would report, for tests that must fail.
type recorder struct {
	testing.TB // for what is not recorded
	t          *testing.T
	name       string

	mu      sync.Mutex
	failed  bool
	skipped bool
	lines   []string
	parts   []*recorder
}

// witness runs f on a recorder.
func witness(t *testing.T, f func(host)) *recorder {
	t.Helper()
	r := &recorder{TB: t, t: t}
	aside(func() { f(r) })
	return r
}

// recordRun is Run on a recorder.
func recordRun(t *testing.T, scenario Scenario, options ...Option) *recorder {
	t.Helper()
	cfg := configure(options)
	return witness(t, func(h host) {
		h.bubble(func(t testing.TB) { play(t, &cfg, nil, scenario) })
	})
}

// recordCrashes is CrashEverywhere on a recorder.
func recordCrashes(t *testing.T, scenario Scenario, options ...Option) *recorder {
	t.Helper()
	cfg := configure(options)
	return witness(t, func(h host) { crashEverywhere(h, &cfg, scenario) })
}

// aside runs f in its own goroutine, which FailNow may end.
func aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) part(name string, f func(host)) bool {
	child := &recorder{TB: r.TB, t: r.t, name: name}
	aside(func() { f(child) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, child)
	r.failed = r.failed || child.failed
	return !child.failed
}

func (r *recorder) bubble(f func(testing.TB)) {
	inner := &recorder{t: r.t, name: r.name}
	synctest.Test(r.t, func(t *testing.T) {
		inner.TB = t
		aside(func() { f(inner) })
	})
	r.mu.Lock()
	r.lines = append(r.lines, inner.lines...)
	r.failed = r.failed || inner.failed
	r.mu.Unlock()
	if inner.failed {
		runtime.Goexit() // as a test does
	}
}

// text returns everything that was reported.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, line := range r.lines {
		fmt.Fprintf(&b, "%s: %s\n", r.name, line)
	}
	for _, p := range r.parts {
		b.WriteString(p.text())
	}
	return b.String()
}

// failures returns the names of the failed parts.
func (r *recorder) failures() (names []string) {
	for _, p := range r.parts {
		if p.failed {
			names = append(names, p.name)
		}
	}
	return names
}

func (r *recorder) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *recorder) say(line string) {
	r.set(func() { r.lines = append(r.lines, strings.TrimSuffix(line, "\n")) })
}

func (r *recorder) FailNow() {
	r.set(func() { r.failed = true })
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.set(func() { r.skipped = true })
	runtime.Goexit()
}

func (r *recorder) Failed() (is bool) {
	r.set(func() { is = r.failed })
	return is
}

func (r *recorder) Skipped() (is bool) {
	r.set(func() { is = r.skipped })
	return is
}

func (r *recorder) Helper()                 {}
func (r *recorder) Name() string            { return r.name }
func (r *recorder) Logf(f string, a ...any) { r.say(fmt.Sprintf(f, a...)) }

func (r *recorder) Errorf(f string, a ...any) {
	r.say(fmt.Sprintf(f, a...))
	r.set(func() { r.failed = true })
}

func (r *recorder) Fatalf(f string, a ...any) {
	r.say(fmt.Sprintf(f, a...))
	r.FailNow()
}

func (r *recorder) Skipf(f string, a ...any) {
	r.say(fmt.Sprintf(f, a...))
	r.SkipNow()
}

func (r *recorder) Fatal(a ...any) { r.Fatalf("%s", fmt.Sprintln(a...)) }
func (r *recorder) Skip(a ...any)  { r.Skipf("%s", fmt.Sprintln(a...)) }
