package early

import (
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
)

// quickRun is how long the runs of a topic may take on average until they answer or begin their first
// effect, so that a batch waits for them.
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
	mean time.Duration   // moving average, see Ran; negative: there was none
	runs store.EarlyRuns // those that were early, since the process began, without Mean
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

// Ran notes how long a run of a topic has taken until it answered, or began its first effect.
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

// Count adds to the early runs of a topic. Mean is not looked at.
func (t *Topics) Count(name string, n store.EarlyRuns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.all[name]; x != nil {
		x.runs.Kept, x.runs.Late, x.runs.Dropped = x.runs.Kept+n.Kept, x.runs.Late+n.Late, x.runs.Dropped+n.Dropped
	}
}

// Runs returns the early runs of each topic since the process began.
func (t *Topics) Runs(names []string) []store.EarlyRuns {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]store.EarlyRuns, len(names))
	for i, name := range names {
		if x := t.all[name]; x != nil {
			all[i], all[i].Mean = x.runs, max(x.mean, 0)
		}
	}
	return all
}
