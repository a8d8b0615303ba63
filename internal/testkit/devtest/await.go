package devtest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// Patience bounds each wait of a test. Whatever has not come by then does not come: a hang says
// what it waited for, long before the test binary's time is over.
const Patience = 2 * time.Minute

// Await returns what a channel brings, or the zero value when it is closed. If that does not come
// within Patience, the test fails with what was waited for, and where the goroutines stand.
func Await[T any](t testing.TB, what string, events <-chan T) (event T) {
	t.Helper()
	select {
	case event = <-events:
	case <-time.After(Patience):
		t.Fatalf("%s: it did not come within %v:\n%s", what, Patience, stacks())
	}
	return event
}

// AwaitAll is Await for a call that returns when all is done, such as Wait of a group.
func AwaitAll(t testing.TB, what string, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	Await(t, what, done)
}

// Context is the test's context for what has to come within Patience.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Logger returns one whose end is shown if the test fails.
func Logger(t testing.TB) *slog.Logger {
	log := new(Log)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log ends with:\n%s", log)
		}
	})
	return slog.New(slog.NewTextHandler(log, nil))
}

// stacks says where the goroutines stand.
func stacks() fmt.Stringer {
	text := new(strings.Builder)
	_ = pprof.Lookup("goroutine").WriteTo(text, 1) // a Builder takes all
	return text
}
