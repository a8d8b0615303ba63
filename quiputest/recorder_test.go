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

func (r *recorder) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.TrimSuffix(line, "\n"))
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }
func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) Log(a ...any)            { r.say(fmt.Sprintln(a...)) }
func (r *recorder) Logf(f string, a ...any) { r.say(fmt.Sprintf(f, a...)) }

func (r *recorder) Error(a ...any) {
	r.Log(a...)
	r.Fail()
}

func (r *recorder) Errorf(f string, a ...any) {
	r.Logf(f, a...)
	r.Fail()
}

func (r *recorder) Fatal(a ...any) {
	r.Log(a...)
	r.FailNow()
}

func (r *recorder) Fatalf(f string, a ...any) {
	r.Logf(f, a...)
	r.FailNow()
}

func (r *recorder) Skip(a ...any) {
	r.Log(a...)
	r.SkipNow()
}

func (r *recorder) Skipf(f string, a ...any) {
	r.Logf(f, a...)
	r.SkipNow()
}
