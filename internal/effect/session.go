package effect

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Config configures a Session.
type Config struct {
	Store store.Worker
	// Lease is the run's hold on its request if Held. Otherwise it has what is needed to
	// take the lease with the first effect.
	Lease    store.Lease
	Held     bool
	Identity Identity
	// Replay says that an earlier run may have recorded effects. Without it they are not
	// read, so a first run costs no round trip before its first effect.
	Replay bool
	// Input is the handler's input, for verifiers (3.3).
	Input []byte
	// Verifier, if set, returns the verifier registered for an effect's name and class,
	// nil for none.
	Verifier func(name string, class effects.Class) (effects.Verifier, effects.Mode)
	// Warn, if set, logs what operators should know about effects; no payloads.
	Warn func(message string, args ...any)
	// Read, if set, reads an error for the verdict: it returns what the runtime is to know of
	// it, without a value of a user's. It is called where the error is met, in the run.
	Read func(err error) error
	// Refusal, if set, finds an error in a chain that is a result: the outside answered, and its answer
	// would not change (a declined card, E5). With final true it is recorded as the effect's result,
	// and replays as an effects.RecordedError. ok is false if there is none.
	Refusal func(chain []error) (code int, failure journal.Failure, final, ok bool)
	// Placer is the durable function; nil in other handlers.
	Placer Placer
	// Hold is how long an outcome waits for the end of the handler, so that one transaction records it
	// together with the run's answer (TakeLast); 0: it does not.
	Hold time.Duration
	// Frozen is for replays: nothing is called outside and nothing is written; the
	// handler stops where the record ends.
	Frozen bool
	// Lost, if set, is called when the request no longer belongs to the run, with
	// store.ErrStale or ErrJobClosed (J8).
	Lost func(error)
	// Observer counts effects; nil is observer.Nop.
	Observer observer.Observer
}

// Session holds the effects of one run of a handler. It is safe for concurrent
// use. Making one costs no round trip.
type Session struct {
	cfg Config

	leaseMu lock // held while the lease is taken or given back, which changes its fence
	lease   store.Lease
	held    bool
	tried   bool // the run may have taken the lease without knowing
	moved   bool // the run has written the request's row, or may have
	over    bool // handed back: the run must not take the lease again

	sendMu lock // held while an outcome is handed over, so that they come to the chain in order
	last   *sent

	loadMu lock
	loaded bool
	rows   Rows

	mu      sync.Mutex
	undone  bool // see BeginPass
	calls   map[string]*pending
	stopped *Unrecorded
	verdict error // as the handler gets it
	read    error // the verdict, for the runtime
	rank    int
	inside  map[*Call]journal.Digest // calls of fn under way
	spans   []observer.Span
}

// Unrecorded is a call without a recorded outcome, at which a replay stops.
type Unrecorded struct {
	Call     string
	Position string
	Started  bool // its start is recorded
}

// pending is one call of this run; done is closed when it has an outcome.
type pending struct {
	label   string
	done    chan struct{}
	result  []byte
	err     error
	notDone bool // the call may be repeated in this run, under the next key
	skipped bool // its branch was stopped before the outcome
}

// NewSession returns the Session of one run.
func NewSession(cfg Config) *Session {
	if cfg.Observer == nil {
		cfg.Observer = observer.Nop{}
	}
	s := &Session{cfg: cfg, lease: cfg.Lease, held: cfg.Held, leaseMu: newLock(), sendMu: newLock(), loadMu: newLock()}
	s.lease.Fresh = !s.held
	return s
}

// scoped is a context with a session. A durable function asks it once a call, and
// what it asks is not looked for in the contexts around it.
type scoped struct {
	context.Context
	session *Session
}

// Value implements context.Context.
func (c *scoped) Value(key any) any {
	switch key.(type) {
	case port.RunKey:
		if c.session == nil { // no Run, not one that is nil
			return nil
		}
		return c.session
	case within: // a body is within the run
		if c.session != nil {
			return nil
		}
	}
	return c.Context.Value(key)
}

// With returns ctx with the session: Do finds it there.
func With(ctx context.Context, s *Session) context.Context { return &scoped{ctx, s} }

// From is the session of ctx, nil outside a job (E14).
func From(ctx context.Context) *Session {
	s, _ := ctx.Value(port.RunKey{}).(*Session)
	return s
}

// Placer is the Config's: the durable function, nil for none.
func (s *Session) Placer() Placer { return s.cfg.Placer }

// Keep takes the run's lease if there is none yet (E9). Errors are the store's:
// ErrStale, ErrJobClosed and ErrLeased end the run.
func (s *Session) Keep(ctx context.Context) error {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	switch {
	case s.over:
		return store.ErrStale
	case s.held:
		return nil
	}
	s.tried, s.moved = true, true
	l, err := s.cfg.Store.Keep(ctx, s.lease)
	if err != nil {
		return err
	}
	s.lease, s.held = l, true
	return nil
}

// Lease is the run's hold on its request, and whether the run is known to have one. It is
// not while the lease is being taken or given back.
func (s *Session) Lease() (l store.Lease, held bool) {
	if !s.leaseMu.tryLock() {
		return l, false
	}
	defer s.leaseMu.Unlock()
	return s.lease, s.held
}

// Moved reports whether the run has written the row of its request, or may have.
func (s *Session) Moved() bool {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	return s.moved
}

// current is the lease for the run's writes. If the run has none yet, the first write of
// an effect takes it: see adopt.
func (s *Session) current() store.Lease {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	s.tried, s.moved = s.tried || s.lease.Fresh, true
	s.lease.Resumes = s.cfg.Lease.Resumes // the store does not keep it
	return s.lease
}

// adopt notes the lease that a write of this run took (store.Lease.Fresh).
func (s *Session) adopt(row *store.EffectRow) {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	if !s.held && row.Holder == s.lease.Holder {
		s.lease.Fence, s.lease.Fresh, s.held = row.Fence, false, true
	}
}

// Follows reports that no run has had the request between that of from and this one: what is
// recorded of effects is what they have recorded. Each lease raises the fence (E9).
func (s *Session) Follows(from *Session) bool { return s.fence() == from.fence()+1 }

func (s *Session) fence() int64 {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	return s.lease.Fence
}

// HandBack ends the run's lease, if it has one (E9). Afterwards neither a waiting Keep
// nor a late completion takes it again.
func (s *Session) HandBack(ctx context.Context) error {
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	s.over, s.lease.Fresh = true, false
	if !s.held && !s.tried {
		return nil
	}
	s.held, s.tried = false, false
	return s.cfg.Store.HandBack(ctx, s.lease)
}

// Ranks of verdicts: the runtime acts on the highest. A verdict that the next run would
// reach again ranks below one that only holds now.
const (
	rankFailed = iota + 1
	rankRefuted
	rankParked
	rankDiffers
	rankAgain
	rankLost
)

// Verdict is what the effects say about the run, whatever the handler returned, or nil.
// From high to low rank: store.ErrStale or ErrJobClosed (no answer); ErrBusy or a
// *StoreError (hand back); the *NondeterminismError of a durable function (park);
// *ParkedError, *ConfirmError or *MisfitError (park); *VerificationError (ends the
// activity); *UnknownError, *DuplicateError or another error (the attempt failed).
func (s *Session) Verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// Abandon says that the run is given up while its handler goes on. Calls that are under
// way outside have an unknown outcome (E5). A call that still ends is recorded late.
func (s *Session) Abandon(cause error) {
	s.mu.Lock()
	flying := maps.Clone(s.inside)
	s.mu.Unlock()
	if s.cfg.Placer != nil {
		s.cfg.Placer.GiveUp()
	}
	for c, key := range flying {
		if c.class != effects.Pure {
			_ = s.unknown(c, key, cause)
		}
	}
}

func (s *Session) fly(c *Call, key journal.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside == nil {
		s.inside = make(map[*Call]journal.Digest)
	}
	s.inside[c] = key
}

func (s *Session) land(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, c)
}

// Spans are the effects that have ended so far.
func (s *Session) Spans() []observer.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans[:len(s.spans):len(s.spans)]
}

func (s *Session) judge(c *Call, err error) error { return s.Judge(c.place, err) }

// Judge notes an error of the call at place p (nil for none) in the verdict, and returns
// it. An error of a call that has lost does not count, unless the run lost its request.
func (s *Session) Judge(p Place, err error) error {
	rank := rankOf(err)
	if rank < rankLost && p != nil && p.Lost() {
		return err
	}
	read := err
	if s.cfg.Read != nil {
		read = s.cfg.Read(err)
	}
	s.mu.Lock()
	if rank > s.rank {
		s.rank, s.verdict, s.read = rank, err, read
	}
	s.mu.Unlock()
	if rank == rankLost && s.cfg.Lost != nil {
		s.cfg.Lost(err)
	}
	return err
}

// rankOf looks at err itself, not at what it wraps, which can be an error of the user's.
func rankOf(err error) int {
	switch e := err.(type) {
	case *StoreError:
		if errors.Is(e.Err, store.ErrStale) || errors.Is(e.Err, store.ErrJobClosed) {
			return rankLost
		}
		return rankAgain
	case *effects.NondeterminismError:
		if e.Position != "" {
			return rankDiffers
		}
	case *effects.ParkedError, *ConfirmError, *MisfitError:
		return rankParked
	case *VerificationError:
		return rankRefuted
	case *busyError:
		return rankAgain
	}
	return rankFailed
}

// Doomed is the verdict of a run that can have no further effects. In a durable function
// every verdict dooms it, because no later run would repeat what the function did with
// the error.
func (s *Session) Doomed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rank > rankFailed || s.cfg.Placer != nil {
		return s.verdict
	}
	return nil
}

// load gives the recorded effects, which a replay reads once; a durable function has them
// from BeginPass.
func (s *Session) load(ctx context.Context) (Rows, error) {
	if !s.cfg.Replay && s.cfg.Placer == nil {
		return Rows{}, nil
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if s.loaded {
		return s.rows, nil
	}
	list, err := s.cfg.Store.Effects(ctx, s.cfg.Lease.Job, s.cfg.Lease.Request)
	if err != nil {
		return Rows{}, err
	}
	s.rows, s.loaded = NewRows(list), true
	return s.rows, nil
}

// Stopped is the call at which a replay stopped (Config.Frozen), nil if it did not.
func (s *Session) Stopped() *Unrecorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// StopAt notes the first call at which a replay stops.
func (s *Session) StopAt(u Unrecorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stopped = &u
	}
}
