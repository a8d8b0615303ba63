package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/quipu-journal/quipu/flow"
)

// maxFlows bounds the compiled flows that are kept.
const maxFlows = 512

// Source reads the canonical definition of a deployed flow version.
type Source interface {
	// Flow returns the canonical definition: store.ErrNotFound.
	Flow(ctx context.Context, name, version string) ([]byte, error)
}

// Flows compiles deployed flow versions once; a version never changes, so
// nothing has to be invalidated. It is safe for concurrent use.
type Flows struct {
	source Source
	mu     sync.Mutex
	known  map[flowKey]*flow.Flow
}

type flowKey struct{ name, version string }

// NewFlows returns an empty cache over the source.
func NewFlows(s Source) *Flows { return &Flows{source: s, known: map[flowKey]*flow.Flow{}} }

// Cached returns a flow that is compiled already, or nil.
func (f *Flows) Cached(name, version string) *flow.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[flowKey{name, version}]
}

// Get returns the compiled flow, reading it if need be.
func (f *Flows) Get(ctx context.Context, name, version string) (*flow.Flow, error) {
	if known := f.Cached(name, version); known != nil {
		return known, nil
	}
	canonical, err := f.source.Flow(ctx, name, version)
	if err != nil {
		return nil, fmt.Errorf("flow %s version %s: %w", name, version, err)
	}
	compiled, err := flow.FromCanonical(canonical)
	if err != nil {
		return nil, fmt.Errorf("flow %s version %s as stored does not compile with this build: %w", name, version, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxFlows {
		clear(f.known)
	}
	f.known[flowKey{name, version}] = compiled
	return compiled, nil
}
