package durable

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// loadTimeout bounds Load.
const loadTimeout = 10 * time.Second

// errHalted ends a run that was stopped at a call and waits for nothing.
var errHalted = errors.New("the function was stopped at a call")

// Config configures a Function. New sets the Placer of the embedded Config.
type Config struct {
	effect.Config
	// Original is the request whose compensations this one runs, nil for none (3.5).
	// Identity is then the original's.
	Original *Original
	// Ended says that the record of a frozen run is complete: no effect is called again.
	Ended bool
	// Room bounds the pauses that are open at a time, in bytes; default
	// wire.MaxPauseBytes.
	Room int
	// Grace is how long lost branches may take to return.
	Grace time.Duration
	// Stands lets a function that waits for one thing, in its own branch, stand there:
	// see GoOn.
	Stands bool
}

// Original is the request whose compensations another request runs.
type Original struct {
	Job     journal.JobID
	Request journal.GUID
}

// Function is one delivery of a request to a durable function: one run of it, and a
// second one if it is undone.
type Function struct {
	cfg     Config
	session *effect.Session

	mu   sync.Mutex
	walk *walk // the latest run, nil before Load
}

// New returns the function of one delivery. It costs no round trip.
func New(cfg Config) *Function {
	f := &Function{cfg: cfg}
	f.cfg.Placer = f
	f.session = effect.NewSession(f.cfg.Config)
	return f
}

// Session has the effects of the function.
func (f *Function) Session() *effect.Session { return f.session }

// functionOf is the durable function that ctx belongs to; outside a job it is nil, in another
// handler that is an error.
func functionOf(ctx context.Context, c *call) (*Function, error) {
	s := effect.From(ctx)
	if s == nil {
		return nil, nil
	}
	f, ok := s.Placer().(*Function)
	if !ok {
		return nil, effect.NotDurable(c.String())
	}
	return f, nil
}

// GiveUp implements effect.Placer: every branch stops at its next call.
func (f *Function) GiveUp() {
	if w := f.walking(); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.given = true
	}
}

func (f *Function) walking() *walk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.walk
}

// Load reads the record of the function before Run: its effects and its waits, one round
// trip each, in parallel. Its error is also in the session's verdict.
func (f *Function) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var recorded, undone []store.EffectRow
	var pauses, waits []store.Pause
	g, ctx := errgroup.WithContext(ctx)
	read := func(o Original, effects *[]store.EffectRow, pauses *[]store.Pause) {
		g.Go(func() (err error) {
			*effects, err = f.cfg.Store.Effects(ctx, o.Job, o.Request)
			return err
		})
		g.Go(func() (err error) {
			*pauses, err = f.cfg.Store.Pauses(ctx, o.Job, o.Request)
			return err
		})
	}
	this := Original{f.cfg.Lease.Job, f.cfg.Lease.Request}
	switch {
	case f.cfg.Original != nil && f.cfg.Replay:
		read(this, &undone, &waits)
		fallthrough
	case f.cfg.Original != nil:
		read(*f.cfg.Original, &recorded, &pauses)
	case f.cfg.Replay:
		read(this, &recorded, &pauses)
	}
	if err := g.Wait(); err != nil {
		return f.session.Judge(nil, &effect.StoreError{Op: "read what is recorded of the function", Err: err})
	}
	w := newWalk(recorded, pauses)
	w.waited = pauses
	if f.cfg.Original != nil {
		w.undone, w.waited = effect.NewRows(undone), waits
	}
	cause, failed := w.rows.ByKey[f.session.Effect(theCause(), 0).Key]
	w.cause, w.undoing = cause.Result, failed || f.cfg.Original != nil
	f.session.BeginPass(w.rows, w.undoing)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.walk = w
	return nil
}

// Ending is how a run of a durable function ended.
type Ending struct {
	Result []byte
	Err    error // a panic is a *PanicError
	// Suspended says that the run waits for Pauses, in the order in which it reached
	// them.
	Suspended bool
	Pauses    []wire.Pause
}

// Run runs fn in its own goroutines, after Load, and returns when fn has returned or
// suspended. Lost branches that are still in a call get Config.Grace to return from it.
func (f *Function) Run(ctx context.Context, fn func(context.Context) ([]byte, error)) Ending {
	w := f.walking()
	main := w.branch(nil, "")
	ctx = effect.With(ctx, f.session)
	if f.cfg.Stands && f.cfg.Original == nil && !w.undoing {
		w.stand = newStand(cameOf(w.waited))
		w.stand.ctx.follow(ctx)
		ctx = w.stand.ctx
	}
	w.mu.Lock()
	w.main, w.live = main, 1
	w.line = append(w.line, main)
	w.next()
	w.mu.Unlock()
	main.start(ctx, func(ctx context.Context) { w.result, w.err = fn(ctx) })
	return f.ending()
}

// ending waits for the end of the run.
func (f *Function) ending() Ending {
	w := f.walking()
	w.await()
	err := f.session.Flush() // it is in the verdict
	if f.Stands() && err == nil {
		return Ending{Suspended: true, Pauses: []wire.Pause{w.named[0].Pause}}
	}
	f.Drop()
	w.quiet(f.cfg.Grace)
	_ = f.session.Flush() // of branches that had lost
	w.mu.Lock()
	defer w.mu.Unlock()
	main, end := w.main, Ending{Result: w.result, Err: w.err}
	if main.panicked != nil {
		end.Err = main.panicked
		if main.panicked.exited {
			end.Err = ErrGoexit
		}
	}
	for i := range w.named {
		if !w.named[i].by.lostLocked() {
			end.Pauses = append(end.Pauses, w.named[i].Pause)
		}
	}
	if end.Suspended = main.status == isSuspended && len(end.Pauses) > 0; main.status == isSuspended && !end.Suspended {
		end.Err = cmp.Or(f.session.Verdict(), errHalted)
	}
	return end
}

// Unasked compares the end of the run with the record: a recorded call that was not made
// is a difference (E15). Do not use it for a run that was cut off or will be tried again.
func (f *Function) Unasked() error {
	w := f.walking()
	w.mu.Lock()
	r := w.history.unseen(w.lost)
	w.mu.Unlock()
	if r == nil {
		return nil
	}
	return f.session.Judge(nil, &effects.NondeterminismError{Position: r.position, Recorded: r.String()})
}
