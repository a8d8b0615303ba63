package e2e

import "sync"

// tail keeps the end of what a process said.
type tail struct {
	mu   sync.Mutex
	b    []byte
	keep int // bytes; 0 is tailBytes
}

const tailBytes = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	keep := t.keep
	if keep == 0 {
		keep = tailBytes
	}
	if over := len(t.b) - keep; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
