package effects

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// ErrUndoing is what calls return that are not recorded, in a durable function
// that has failed and is run once more, for its compensations only.
var ErrUndoing = errors.New("the function is being undone: nothing new is begun")

// errHalted is the end of a run that was made to stop, and waits for nothing.
var errHalted = errors.New("the function was stopped at a call")

// walk is one run of a durable function, from its top.
type walk struct {
	rows    rows   // of the function
	cause   []byte // of its failure: it is being undone
	undoing bool
	undone  rows          // compensations that have run
	waited  []store.Pause // between their failures

	mu      sync.Mutex
	holder  *branch   // of the baton
	line    []*branch // for the baton
	held    []*branch // go outside when nothing else goes on
	abroad  int       // branches that are outside
	missed  *record   // see hold
	live    int       // branches that have not ended
	idle    chan struct{}
	history *history
	calls   int // positions taken, refused ones too
	forked  int // branches
	lost    []string
	asked   map[pauseID]string // the position where it was asked for last
	named   []named
	size    int                      // of named, bytes
	version map[versionID]int        // told in this run
	undos   map[journal.Digest]*undo // registered in this run
	given   bool                     // the run was given up: every branch stops at its next call
}

// named is what a branch waits for.
type named struct {
	by *branch
	wire.Pause
}

// Original is the request whose compensations another request runs.
type Original struct {
	Job     journal.JobID
	Request journal.GUID
}

// Unrecorded is a call without a recorded outcome, at which a replay stops.
type Unrecorded struct {
	Call     string
	Position string
	Started  bool // its start is recorded
}

// walking is the run of the durable function.
func (s *Session) walking() *walk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.walk
}

// Ending is how a run of a durable function ended.
type Ending struct {
	Result []byte
	Err    error // a panic is a *PanicError
	// Suspended says that it waits for Pauses, in the order in which it came by them.
	Suspended bool
	Pauses    []wire.Pause
}

// Load reads what was recorded of a durable function, at once and before Run: its
// effects and what it waited for, one round trip each, at the same time.
func (s *Session) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var effects, undone []store.EffectRow
	var pauses, waits []store.Pause
	g, ctx := errgroup.WithContext(ctx)
	read := func(of Original, effects *[]store.EffectRow, pauses *[]store.Pause) {
		g.Go(func() (err error) {
			*effects, err = s.cfg.Store.Effects(ctx, of.Job, of.Request)
			return err
		})
		g.Go(func() (err error) {
			*pauses, err = s.cfg.Store.Pauses(ctx, of.Job, of.Request)
			return err
		})
	}
	own := Original{s.cfg.Lease.Job, s.cfg.Lease.Request}
	switch {
	case s.cfg.Original != nil && s.cfg.Replay:
		read(own, &undone, &waits)
		fallthrough
	case s.cfg.Original != nil:
		read(*s.cfg.Original, &effects, &pauses)
	case s.cfg.Replay:
		read(own, &effects, &pauses)
	}
	if err := g.Wait(); err != nil {
		return s.judge(nil, &StoreError{Op: "read what is recorded of the function", Err: err})
	}
	if s.cfg.Original == nil {
		undone, waits = effects, pauses
	}
	w := &walk{
		rows: newRows(effects), history: newHistory(effects, pauses), undone: newRows(undone), waited: waits,
		asked: make(map[pauseID]string), version: make(map[versionID]int), undos: make(map[journal.Digest]*undo),
	}
	cause, failed := w.rows.byKey[s.cfg.Identity.key(theCause(), 0)]
	w.cause, w.undoing = cause.Result, failed || s.cfg.Original != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walk = w
	return nil
}

// Run runs fn as the durable function of the session, after Load, in goroutines of
// its own, and returns when it has returned or suspended. Branches that have lost
// and are still in a call get Config.Grace to return from it.
func (s *Session) Run(ctx context.Context, fn func(context.Context) ([]byte, error)) Ending {
	w := s.walking()
	main := w.branch(nil, "")
	var end Ending
	w.mu.Lock()
	w.live = 1
	w.line = append(w.line, main)
	w.next()
	w.mu.Unlock()
	main.start(With(ctx, s), func(ctx context.Context) { end.Result, end.Err = fn(ctx) })
	<-main.over
	w.quiet(s.cfg.Grace)
	w.mu.Lock()
	defer w.mu.Unlock()
	if main.panicked != nil {
		end.Err = main.panicked
		if goexit, ok := main.panicked.Value.(error); ok && errors.Is(goexit, ErrGoexit) {
			end.Err = goexit
		}
	}
	for i := range w.named {
		if !w.named[i].by.lostLocked() {
			end.Pauses = append(end.Pauses, w.named[i].Pause)
		}
	}
	if end.Suspended = main.status == isSuspended && len(end.Pauses) > 0; main.status == isSuspended && !end.Suspended {
		end.Err = cmp.Or(s.Verdict(), errHalted)
	}
	return end
}

// Stopped is where a replay stopped (Config.Frozen), nil where it did not.
func (s *Session) Stopped() *Unrecorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// stopAt notes the first call that a replay stops at.
func (s *Session) stopAt(c *call, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stopped = &Unrecorded{Call: c.String(), Position: c.position, Started: started}
	}
}

// giveUp lets every branch go no further than its next call.
func (w *walk) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = true
}

// quiet waits until all branches have ended, for a while.
func (w *walk) quiet(grace time.Duration) {
	w.mu.Lock()
	if w.live == 0 {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// Unasked compares the end of the run with the record: a recorded call that was
// not made is a difference (E15). It is for a run that has come to its end, not
// for one that was cut off or that is tried again.
func (s *Session) Unasked() error {
	w := s.walking()
	w.mu.Lock()
	r := w.history.unseen(w.lost)
	w.mu.Unlock()
	if r == nil {
		return nil
	}
	return s.judge(nil, &NondeterminismError{Position: r.position, Recorded: r.String()})
}
