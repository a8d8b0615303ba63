package quiputest

import (
	"sync"
	"time"
)

// hub tells those who wait that something has changed.
type hub struct {
	mu   sync.Mutex
	next chan struct{}
}

// changed is closed with the next change.
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

// forever is no bound.
const forever = time.Duration(-1)

// rest waits for a change, but no longer than d, nor than until ended is closed. It
// reports whether it is not.
func rest(ended, changed <-chan struct{}, d time.Duration) bool {
	var over <-chan time.Time
	if d != forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ended:
		return false
	case <-changed:
	case <-over:
	}
	return true
}
