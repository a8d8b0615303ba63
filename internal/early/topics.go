package early

import (
	"slices"
	"sync"
	"time"
)

// quickRun is how long the runs of a topic may take on average, so that a batch waits for them.
const quickRun = 100 * time.Microsecond

// Topics are the topics whose requests may begin early in this process. A nil *Topics has none. It is
// safe for concurrent use.
type Topics struct {
	mu        sync.Mutex
	all       map[string]*topic
	suspended []string // in the whole space, because a process with runs of these topics has died (L4)
}

// topic is what is known of the runs of one topic.
type topic struct {
	mean time.Duration // moving average of all its runs; negative: there was none
	Counts
}

// Counts are what became of the early runs of a topic.
type Counts struct {
	Kept    int64 // their answers committed with their causes
	Late    int64 // their causes committed before they answered
	Dropped int64 // their causes did not commit
}

// NewTopics returns none.
func NewTopics() *Topics { return &Topics{all: map[string]*topic{}} }

// Serve adds a topic: this process serves it, and its handler was registered with workers.Early.
func (t *Topics) Serve(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[name] == nil {
		t.all[name] = &topic{mean: -1}
	}
}

// Suspend says which topics are early nowhere in the space now: the next run of a handler that kills
// its process has to meet a committed row, which counts it (E9, L4).
func (t *Topics) Suspend(names []string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspended = names
}

// Ran notes how long a run of a topic has taken.
func (t *Topics) Ran(name string, took time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch x := t.all[name]; {
	case x == nil:
	case x.mean < 0:
		x.mean = took
	default:
		x.mean += (took - x.mean) / 8
	}
}

// May reports whether a request of the topic may begin early, and whether its runs are so quick that
// a batch waits for them. A topic that has not run yet is not.
func (t *Topics) May(name string) (may, quick bool) {
	if t == nil {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.all[name]
	if x == nil || slices.Contains(t.suspended, name) {
		return false, false
	}
	return true, x.mean >= 0 && x.mean <= quickRun
}

// Count adds to the counts of a topic.
func (t *Topics) Count(name string, n Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.all[name]; x != nil {
		x.Kept, x.Late, x.Dropped = x.Kept+n.Kept, x.Late+n.Late, x.Dropped+n.Dropped
	}
}

// Of returns the counts of a topic, and how long its runs take on average; 0: there was none.
func (t *Topics) Of(name string) (n Counts, mean time.Duration) {
	if t == nil {
		return n, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.all[name]; x != nil {
		n, mean = x.Counts, max(x.mean, 0)
	}
	return n, mean
}
