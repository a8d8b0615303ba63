package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// maxFlows bounds the compiled flows that are kept.
const maxFlows = 512

// Source reads deployed flow versions.
type Source interface {
	// Flow returns the canonical definition. Error: store.ErrNotFound.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// ActiveFlow returns the version for new jobs. Error: store.ErrNotFound.
	ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, canonical []byte, err error)
	// ExpireDefault is how long closed jobs are kept whose flow does not say `expire`.
	ExpireDefault(ctx context.Context) (time.Duration, error)
	// Deploy stores a built-in flow. Error: store.ErrVersionTaken.
	Deploy(ctx context.Context, d store.Deployment) (store.Deployed, error)
}

// Flows compiles each definition once. A definition is known by its digest, so nothing has to be
// invalidated, and a job gets the one whose digest it carries or none (S9). The space's default
// for `expire` is read once, too (W11). Flows is safe for concurrent use.
type Flows struct {
	source Source
	mu     sync.Mutex
	keep   *time.Duration // the space's default for `expire`; nil: not read yet (W11)
	known  map[journal.Digest]*flow.Flow
	named  map[flowKey]journal.Digest // of what was read last under a name and a version
	active map[string]journal.FlowRef // as last read; an inception finds out if it has changed (W9)
}

type flowKey struct{ name, version string }

// NewFlows returns an empty cache over the source.
func NewFlows(s Source) *Flows {
	return &Flows{
		source: s, known: map[journal.Digest]*flow.Flow{}, named: map[flowKey]journal.Digest{},
		active: map[string]journal.FlowRef{},
	}
}

// Cached returns a flow that is compiled already, or nil.
func (f *Flows) Cached(digest journal.Digest) *flow.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[digest]
}

// Named returns the flow that was read last under a name and a version, or nil. It is enough for
// what is a hint, and for a job that is about to begin and takes its digest.
func (f *Flows) Named(name, version string) *flow.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[f.named[flowKey{name, version}]]
}

// Knows reports whether Resolve reads nothing.
func (f *Flows) Knows(name, version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version != "" {
		return f.known[f.named[flowKey{name, version}]] != nil
	}
	return !flow.IsBuiltin(name) && f.known[f.active[name].Digest] != nil
}

// Get returns the compiled flow whose digest a job carries, and reads it if necessary. Errors are
// those of Source, and *store.ChangedError: what is stored has another digest.
func (f *Flows) Get(ctx context.Context, ref journal.FlowRef) (*flow.Flow, error) {
	if known := f.Cached(ref.Digest); known != nil {
		return known, nil
	}
	return f.read(ctx, ref.Name, ref.Version, func(definition []byte) error { return store.SameFlow(ref, definition) })
}

// read reads and compiles a flow version that check accepts.
func (f *Flows) read(
	ctx context.Context, name, version string, check func(definition []byte) error) (*flow.Flow, error,
) {
	canonical, err := f.source.Flow(ctx, name, version)
	if err == nil {
		err = check(canonical)
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s version %s: %w", name, version, err)
	}
	return f.compile(ctx, name, version, canonical)
}

// version returns a version for new jobs: they take the digest of what is read.
func (f *Flows) version(ctx context.Context, name, version string) (*flow.Flow, error) {
	if known := f.Named(name, version); known != nil {
		return known, nil
	}
	return f.read(ctx, name, version, func([]byte) error { return nil })
}

// Resolve returns the version for a new job: the given one or, for "", the active one as this
// process read it last. The inception has to check that (store.Start.Active). Versions of a
// built-in flow have no order, so one must be given; it is deployed if it is missing.
func (f *Flows) Resolve(ctx context.Context, name, version string) (journal.FlowRef, *flow.Flow, error) {
	if version != "" {
		compiled, err := f.version(ctx, name, version)
		if flow.IsBuiltin(name) && errors.Is(err, store.ErrNotFound) {
			compiled, err = f.install(ctx, name, version)
		}
		if err != nil {
			return journal.FlowRef{}, nil, err
		}
		return collation.RefOf(compiled), compiled, nil
	}
	if flow.IsBuiltin(name) {
		return journal.FlowRef{}, nil, fmt.Errorf("flow %s is built in: %w: without a version; its version is the topic", name, store.ErrNotFound)
	}
	f.mu.Lock()
	last := f.active[name]
	known := f.known[last.Digest]
	f.mu.Unlock()
	if known != nil {
		return last, known, nil
	}
	ref, canonical, err := f.source.ActiveFlow(ctx, name)
	if err != nil {
		return ref, nil, fmt.Errorf("flow %q: %w", name, err)
	}
	compiled := f.Cached(ref.Digest)
	if compiled == nil {
		if err := store.SameFlow(ref, canonical); err != nil {
			return ref, nil, err
		}
		if compiled, err = f.compile(ctx, ref.Name, ref.Version, canonical); err != nil {
			return ref, nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active[name] = ref
	return ref, compiled, nil
}

// Forget drops the known active version of a flow, after an inception found another.
func (f *Flows) Forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.active, name)
}

// reset drops everything: another database may have other flows (S13).
func (f *Flows) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep = nil
	clear(f.known)
	clear(f.active)
}

// install deploys a built-in flow. If another build has stored the name and the version
// already, that definition stays and is returned.
func (f *Flows) install(ctx context.Context, name, version string) (*flow.Flow, error) {
	built, err := flow.Builtin(name, version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	_, err = f.source.Deploy(ctx, store.Deployment{Ref: collation.RefOf(built), Canonical: built.Canonical()})
	if err != nil && !errors.Is(err, store.ErrVersionTaken) {
		return nil, fmt.Errorf("deploy the built-in flow %s version %s: %w", name, version, err)
	}
	return f.version(ctx, name, version)
}

func (f *Flows) compile(ctx context.Context, name, version string, canonical []byte) (*flow.Flow, error) {
	compiled, err := flow.FromCanonical(canonical)
	if err != nil {
		return nil, fmt.Errorf("flow %s version %s as stored does not compile with this build: %w", name, version, err)
	}
	keep, err := f.keptFor(ctx)
	if err != nil {
		return nil, fmt.Errorf("flow %s version %s: read how long the space keeps jobs: %w", name, version, err)
	}
	compiled = compiled.KeptFor(keep)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxFlows || len(f.named) >= maxFlows {
		clear(f.known)
		clear(f.named)
	}
	f.known[journal.Digest(compiled.Digest())] = compiled
	f.named[flowKey{name, version}] = journal.Digest(compiled.Digest())
	return compiled, nil
}

// keptFor reads once how long the space keeps closed jobs whose flow does not say it. So all
// flows of a process have the same default, whenever they are read.
func (f *Flows) keptFor(ctx context.Context) (time.Duration, error) {
	f.mu.Lock()
	known := f.keep
	f.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	d, err := f.source.ExpireDefault(ctx)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keep == nil { // nobody else has read it meanwhile
		f.keep = &d
	}
	return *f.keep, nil
}
