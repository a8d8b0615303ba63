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

// meter counts the runs of handlers that have ended, by topic.
type meter struct {
	at  map[string]int // of a topic, in all
	all []atomic.Int64
	// seen are the counts within the last span, the oldest first, behind one from before it. Only
	// the goroutine that renews the session uses them.
	seen []sample
}

// sample is what a meter had counted at a time.
type sample struct {
	at  time.Time
	all []int64
}

func newMeter(topics []string) *meter {
	m := &meter{at: make(map[string]int, len(topics)), all: make([]atomic.Int64, len(topics))}
	for i, topic := range topics {
		m.at[topic] = i
	}
	return m
}

// add counts a run. A topic that the meter does not have is not counted.
func (m *meter) add(topic string) {
	if i, ok := m.at[topic]; ok {
		m.all[i].Add(1)
	}
}

// lately returns how many runs of each topic have ended in the span before now.
func (m *meter) lately(now time.Time) []int64 {
	s := sample{now, make([]int64, len(m.all))}
	for i := range m.all {
		s.all[i] = m.all[i].Load()
	}
	for len(m.seen) > 1 && now.Sub(m.seen[1].at) >= RanSpan {
		m.seen = m.seen[1:]
	}
	ran := slices.Clone(s.all)
	if len(m.seen) > 0 && now.Sub(m.seen[0].at) >= RanSpan {
		for i, n := range m.seen[0].all {
			ran[i] -= n
		}
	}
	if n := len(m.seen); n == 0 || now.Sub(m.seen[n-1].at) >= meterStep {
		m.seen = append(m.seen, s)
	}
	return ran
}
