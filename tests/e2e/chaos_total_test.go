//go:build chaos

package e2e

import (
	"testing"
	"time"
)

// total is what all rounds of a run counted.
type total struct {
	begun                         time.Time
	rounds, failed, jobs, workers int            // workers at a time, at most
	events                        map[string]int // faults and answers by name: kill, stop, …
	latest                        time.Duration  // the longest that jobs took to end once the faults were over
}

// round adds what a round that has come to its end did.
func (s *total) round(c *chaos, jobs int, quiet time.Duration) {
	s.jobs += jobs
	s.latest = max(s.latest, quiet)
	s.workers = max(s.workers, len(c.kids))
	for what, n := range c.counts {
		s.events[what] += n
	}
}

// add counts a round, whatever became of it.
func (s *total) add(ok bool) {
	s.rounds++
	if !ok {
		s.failed++
	}
}

// report says in one line what the run counted.
func (s *total) report(t *testing.T) {
	t.Logf("%d rounds in %v, %d failed: %d jobs, up to %d workers at a time, %v; all jobs had ended at the latest %v after the faults",
		s.rounds, time.Since(s.begun).Round(time.Second), s.failed, s.jobs, s.workers, s.events, s.latest.Round(10*time.Millisecond))
}
