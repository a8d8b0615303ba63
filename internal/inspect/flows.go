package inspect

import (
	"crypto/sha256"
	"sync"

	"github.com/quipu-journal/quipu/flow"
)

// maxFlows bounds the compiled flow versions that are kept.
const maxFlows = 100

// flows keeps flow versions compiled, so that a read of a job does not spend milliseconds on that of its
// flow. The zero value is ready.
type flows struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*flow.Flow // by the text; nil: this build cannot read it
}

// compiled is the flow of a canonical text; nil if this build cannot read it.
func (c *flows) compiled(text []byte) *flow.Flow {
	of := sha256.Sum256(text)
	c.mu.Lock()
	f, known := c.kept[of]
	c.mu.Unlock()
	if known {
		return f
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		f = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxFlows { // which are used is known after a few reads again
		c.kept = map[[sha256.Size]byte]*flow.Flow{}
	}
	c.kept[of] = f
	return f
}
