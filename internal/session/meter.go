package session

import (
	"slices"
	"sync/atomic"
	"time"
)

// RanSpan is the time over which a renewal tells the runs that have ended.
const RanSpan = time.Minute

// meterStep is the least time between two samples: a meter has about as many as fit into RanSpan.
const meterStep = time.Second

// counter counts the runs of handlers that have ended, by topic.
type counter struct {
	at  map[string]int // of a topic, in all
	all []atomic.Int64
	meter
}

func newCounter(topics []string) *counter {
	c := &counter{at: make(map[string]int, len(topics)), all: make([]atomic.Int64, len(topics))}
	for i, topic := range topics {
		c.at[topic] = i
	}
	return c
}

// add counts a run. A topic that the counter does not have is not counted.
func (c *counter) add(topic string) {
	if i, ok := c.at[topic]; ok {
		c.all[i].Add(1)
	}
}

// lately returns how many runs of each topic have ended in the span before now.
func (c *counter) lately(now time.Time) []int64 {
	all := make([]int64, len(c.all))
	for i := range c.all {
		all[i] = c.all[i].Load()
	}
	return c.grown(now, all)
}

// meter tells how much counts have grown within a span. Only the goroutine that renews the session
// uses it.
type meter struct {
	// seen are the counts within the last span, the oldest first, behind one from before it.
	seen []sample
}

// sample is what had been counted at a time.
type sample struct {
	at  time.Time
	all []int64
}

// grown returns how much each count has grown in the span before now. all are the counts now, always
// of the same things. It keeps them.
func (m *meter) grown(now time.Time, all []int64) []int64 {
	for len(m.seen) > 1 && now.Sub(m.seen[1].at) >= RanSpan {
		m.seen = m.seen[1:]
	}
	by := slices.Clone(all)
	if len(m.seen) > 0 && now.Sub(m.seen[0].at) >= RanSpan {
		for i, n := range m.seen[0].all {
			by[i] -= n
		}
	}
	if n := len(m.seen); n == 0 || now.Sub(m.seen[n-1].at) >= meterStep {
		m.seen = append(m.seen, sample{now, all})
	}
	return by
}
