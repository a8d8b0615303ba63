package devtest

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"
)

// Work runs something that works until its context ends, such as a Runtime, until stop is called or
// the test ends. An error of it fails the test. Stop waits for its end, which fails the test when it
// does not come; it can be called again.
func Work(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("it ended with: %v", err)
			}
		case <-time.After(Patience):
			t.Fatalf("it has not ended %v after its context:\n%s", Patience, stacks())
		}
	})
	t.Cleanup(stop)
	return stop
}

// LogBytes is how much a Log keeps if it does not say.
const LogBytes = 256 << 10

// Log keeps the end of what was written to it, by a process or by several goroutines, while a test
// reads it. The zero value is ready.
type Log struct {
	// Keep is how many bytes are kept; 0 is LogBytes.
	Keep int

	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 2*l.keep() {
		l.text = bytes.Clone(l.end())
	}
	return len(p), nil
}

// String returns the end of what was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.end())
}

func (l *Log) end() []byte { return l.text[max(0, len(l.text)-l.keep()):] }

func (l *Log) keep() int {
	if l.Keep > 0 {
		return l.Keep
	}
	return LogBytes
}
