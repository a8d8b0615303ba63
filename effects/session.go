package effects

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
)

// Config of a Session.
type Config struct {
	Store store.Worker
	// Lease is the run's hold on its request: as Store.Lease gave it with Held,
	// else what to take it with when the first effect needs it.
	Lease store.Lease
	Held  bool
	// TTL of the lease.
	TTL      time.Duration
	Identity Identity
	// Replay says that an earlier run may have recorded effects; without it they
	// are not looked for, and a first run costs no round trip before its first
	// effect.
	Replay bool
	// Lost, if set, is told that the request is not the run's any more:
	// store.ErrStale or ErrJobClosed (J8).
	Lost func(error)
	// Observer counts effects; nil is observer.Nop.
	Observer observer.Observer
}

// Session holds the effects of one run of a handler. It is safe for concurrent
// use. Making one costs no round trip.
type Session struct {
	cfg Config

	leaseMu sync.Mutex // held over the store's calls: the fence moves under it
	lease   store.Lease
	held    bool

	loadMu   sync.Mutex
	loaded   bool
	recorded map[journal.Digest]store.EffectRow
	labels   map[string]string // by explicit key

	mu      sync.Mutex
	calls   map[string]*pending
	verdict error
	rank    int
	inside  map[*call]journal.Digest // calls of fn under way
	spans   []observer.Span
}

// pending is one call of this run; done is closed when it has an outcome.
type pending struct {
	label   string
	done    chan struct{}
	result  []byte
	err     error
	notDone bool // may be called again in this run, under the next key
}

// NewSession returns the Session of one run.
func NewSession(cfg Config) *Session {
	if cfg.Observer == nil {
		cfg.Observer = observer.Nop{}
	}
	return &Session{cfg: cfg, lease: cfg.Lease, held: cfg.Held}
}

type sessionKey struct{}

// With returns ctx with the session: Do finds it there.
func With(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// from is the session of ctx, nil outside a job (E14).
func from(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// Hold returns the run's lease and takes it if there is none yet. Errors are the
// store's.
func (s *Session) Hold(ctx context.Context) (store.Lease, error) {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	if s.held {
		return s.lease, nil
	}
	return s.lease, s.beat(ctx)
}

// Beat extends the run's lease, and takes it if there is none yet (E9). Errors
// are the store's: ErrStale, ErrJobClosed, ErrLeased end the run.
func (s *Session) Beat(ctx context.Context) error {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	return s.beat(ctx)
}

func (s *Session) beat(ctx context.Context) error {
	l, err := s.cfg.Store.Heartbeat(ctx, s.lease, s.cfg.TTL)
	if err != nil {
		return err
	}
	s.lease, s.held = l, true
	return nil
}

// HandBack ends the lease of a drained run, if it has one (E9).
func (s *Session) HandBack(ctx context.Context) error {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	if !s.held {
		return nil
	}
	s.held = false
	return s.cfg.Store.HandBack(ctx, s.lease)
}

// Ranks of verdicts: the runtime acts on the weightiest. What will show again
// when the request is run again gives way to what is only true now.
const (
	rankFailed = iota + 1
	rankParked
	rankAgain
	rankLost
)

// Verdict is what the effects say of the run, whatever the handler returned, or
// nil. In falling weight: store.ErrStale or ErrJobClosed (no answer), ErrBusy or a
// *StoreError (hand back), *ParkedError (park), and *UnknownError,
// *NondeterminismError, *DuplicateError (the try failed).
func (s *Session) Verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict
}

// Abandon says that the run is given up while its handler goes on: what is under
// way outside has an unknown outcome (E5). A call that ends after all is still
// recorded, late.
func (s *Session) Abandon(cause error) {
	s.mu.Lock()
	flying := maps.Clone(s.inside)
	s.mu.Unlock()
	for c, key := range flying {
		if c.class != Pure {
			_ = s.unknown(c, key, cause)
		}
	}
}

func (s *Session) fly(c *call, key journal.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside == nil {
		s.inside = make(map[*call]journal.Digest)
	}
	s.inside[c] = key
}

func (s *Session) land(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, c)
}

// Spans are the effects that ended so far.
func (s *Session) Spans() []observer.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans[:len(s.spans):len(s.spans)]
}

func (s *Session) judge(err error) error {
	rank := rankFailed
	var parked *ParkedError
	var trouble *StoreError
	switch {
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrJobClosed):
		rank = rankLost
	case errors.Is(err, ErrBusy), errors.As(err, &trouble):
		rank = rankAgain
	case errors.As(err, &parked):
		rank = rankParked
	}
	s.mu.Lock()
	if rank > s.rank {
		s.rank, s.verdict = rank, err
	}
	s.mu.Unlock()
	if rank == rankLost && s.cfg.Lost != nil {
		s.cfg.Lost(err)
	}
	return err
}

// doomed is the verdict of a run that can have no further effects.
func (s *Session) doomed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rank > rankFailed {
		return s.verdict
	}
	return nil
}

// load reads the recorded effects, once, for a run that is not the first.
func (s *Session) load(ctx context.Context) error {
	if !s.cfg.Replay {
		return nil
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if s.loaded {
		return nil
	}
	rows, err := s.cfg.Store.Effects(ctx, s.cfg.Lease.Job, s.cfg.Lease.Request)
	if err != nil {
		return err
	}
	s.recorded = make(map[journal.Digest]store.EffectRow, len(rows))
	s.labels = make(map[string]string)
	for _, row := range rows {
		s.recorded[row.Key] = row
		if key, keyed := explicitOf(row.Name); keyed {
			s.labels[key] = row.Name
		}
	}
	s.loaded = true
	return nil
}
