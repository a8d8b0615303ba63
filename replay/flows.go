package replay

import (
	"sync"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// maxFlows bounds the compiled flows that are kept.
const maxFlows = 512

// Flows keeps compiled definitions by their digests. It is safe for concurrent use.
type Flows struct {
	build string
	mu    sync.Mutex
	known map[journal.Digest]compiled
}

// compiled is a flow, or why this build does not compile it.
type compiled struct {
	flow      *flow.Flow
	mentioned map[string]bool
	err       error
}

func compile(definition []byte) (x compiled) {
	if x.flow, x.err = flow.FromCanonical(definition); x.err == nil {
		x.mentioned = mentions(x.flow)
	}
	return x
}

// NewFlows returns an empty Flows of this build, as entries name builds. What an entry of another
// build says otherwise than this one evaluates is not proved (V17).
func NewFlows(build string) *Flows {
	return &Flows{build: build, known: map[journal.Digest]compiled{}}
}

// get compiles a definition whose digest was checked.
func (f *Flows) get(digest journal.Digest, definition []byte) compiled {
	if f == nil {
		return compile(definition)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	x, known := f.known[digest]
	if !known {
		x = compile(definition)
		if len(f.known) >= maxFlows {
			clear(f.known)
		}
		f.known[digest] = x
	}
	return x
}
