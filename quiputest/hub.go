package quiputest

import (
	"sync"
	"time"
)

// hub tells waiting goroutines that something has changed.
type hub struct {
	mu   sync.Mutex
	next chan struct{}
}

// changed returns a channel that is closed at the next change.
func (h *hub) changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		h.next = make(chan struct{})
	}
	return h.next
}

func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next != nil {
		close(h.next)
		h.next = nil
	}
}

// forever stands for no time limit.
const forever = time.Duration(-1)

// rest waits for a change, at most d, and not after ended is closed. It returns false once ended
// is closed.
func rest(ended, changed <-chan struct{}, d time.Duration) bool {
	var over <-chan time.Time
	if d != forever {
		over = time.After(d)
	}
	select {
	case <-ended:
		return false
	case <-changed:
	case <-over:
	}
	return true
}
