//go:build chaos

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quipu-journal/quipu/tests/guarantees"
)

// total is what all rounds of a run counted.
type total struct {
	guarantees.Chaos
	end func() guarantees.Run
}

// round adds what a round that has come to its end did.
func (s *total) round(c *chaos, jobs int, quiet time.Duration) {
	s.Jobs += jobs
	s.LatestMS = max(s.LatestMS, quiet.Milliseconds())
	s.Workers = max(s.Workers, len(c.kids))
	for what, n := range c.counts {
		s.Events[what] += n
	}
}

// add counts a round, whatever became of it.
func (s *total) add(ok bool) {
	s.Rounds++
	if !ok {
		s.Failed++
	}
}

func (s *total) record(t *testing.T) {
	s.Run = s.end()
	assert.NoError(t, guarantees.Record(guarantees.NameChaos, s.Chaos))
}
