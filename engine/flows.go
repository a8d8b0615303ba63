package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// maxFlows bounds the compiled flows that are kept.
const maxFlows = 512

// Source reads deployed flow versions.
type Source interface {
	// Flow returns the canonical definition: store.ErrNotFound.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// ActiveFlow returns the version for new jobs: store.ErrNotFound.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
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
	return f.compile(name, version, canonical)
}

// Resolve returns the version that a new job takes: the one that is asked for,
// or, for "", the active one.
func (f *Flows) Resolve(ctx context.Context, name, version string) (journal.FlowRef, *flow.Flow, error) {
	if version != "" {
		compiled, err := f.Get(ctx, name, version)
		if err != nil {
			return journal.FlowRef{}, nil, err
		}
		return journal.FlowRef{Name: name, Version: version, Digest: journal.Digest(compiled.Digest())}, compiled, nil
	}
	ref, canonical, err := f.source.ActiveFlow(ctx, name)
	if err != nil {
		return ref, nil, fmt.Errorf("flow %q: %w", name, err)
	}
	if known := f.Cached(ref.Name, ref.Version); known != nil {
		return ref, known, nil
	}
	compiled, err := f.compile(ref.Name, ref.Version, canonical)
	return ref, compiled, err
}

func (f *Flows) compile(name, version string, canonical []byte) (*flow.Flow, error) {
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
