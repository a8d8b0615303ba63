package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/store"
)

// DefaultLease is how long a session lasts without a renewal.
const DefaultLease = 3 * time.Second

// Config configures a Keeper.
type Config struct {
	Store Store
	// Process is what other processes see of this one. Its Lease is how long the session
	// lasts without a renewal, default DefaultLease; a third of it is the time between
	// two renewals.
	store.Process
	// Troubles is what keeps messages from their way, for the others to see; nil: nothing is told.
	// It is called at each renewal and must not block.
	Troubles func() []store.Trouble
	// Busy is the message on which an engine of the process has been deciding for long, which others
	// are told; nil: never.
	Busy func() store.Busy
	// Early is what became of the early runs of each of the process's Early topics since it began, in
	// their order; nil: the others are told nothing.
	Early func() []store.EarlyRuns
	// Suspend is told which topics are early nowhere (L4), when the session is opened and at each
	// renewal; nil: nobody is.
	Suspend func(topics []string)
	Logger  *slog.Logger // nil: silent
}

// Store is the part of a store that a Keeper needs.
type Store interface {
	store.Sessions
	// HandBack is store.Requests'.
	HandBack(ctx context.Context, l store.Lease) error
}

// Keeper keeps the session of a process. Its methods are safe for concurrent use.
type Keeper struct {
	cfg Config

	mu      sync.Mutex
	own     store.Session // nil: none
	renewed time.Time     // when the last successful renewal began
	late    *time.Timer   // fires when the session is no longer certain to be alive
	runs    map[*run]struct{}
	back    []store.Lease // leases to hand back
	given   bool          // the session is given up
	ran     *counter
	early   meter // of kept, late and dropped runs
	engines int   // living engines at the last renewal; 0: not known
	failing failing

	patience time.Duration // bounds the next renewal; only Run uses it
}

// failing is since when the session could not be opened or renewed, and why.
type failing struct {
	since time.Time
	err   error // nil: it could
}

type run struct {
	lease func() (l store.Lease, held bool)
	lost  func(error)
	began time.Time
}

// New returns a Keeper without a session; Run opens it.
func New(cfg Config) *Keeper {
	if cfg.Lease <= 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Suspend == nil {
		cfg.Suspend = func([]string) {}
	}
	return &Keeper{cfg: cfg, runs: map[*run]struct{}{}, ran: newCounter(cfg.Topics), patience: cfg.Lease / 3}
}

// Current is the session, and whether it is certainly alive: renewed within two thirds of
// its lease, by the clock of this process.
func (k *Keeper) Current() (id int64, alive bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own == nil || k.given || time.Since(k.renewed) >= k.sure() {
		return 0, false
	}
	return k.own.ID(), true
}

// Alive reports whether id is the present session of this process, and certainly alive.
func (k *Keeper) Alive(id int64) bool {
	now, alive := k.Current()
	return alive && now == id
}

func (k *Keeper) sure() time.Duration { return k.cfg.Lease * 2 / 3 }

// Ended says that a write failed because the session is over. Current then reports that
// it is not alive, until it is renewed.
func (k *Keeper) Ended(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own != nil && k.own.ID() == id {
		k.renewed = time.Time{}
	}
}

// GiveUp ends the session here, as if others had ended it, because it is of another database
// (S13). Its runs lose what they have at once. Run opens another session when the database lets
// it.
func (k *Keeper) GiveUp() {
	k.mu.Lock()
	k.given, k.renewed, k.back = true, time.Time{}, nil
	k.mu.Unlock()
	k.tell(store.ErrStale)
}

// Watch watches over a run of a handler until stop is called. lease gives the run's hold
// on its request, and whether it has one. When the run loses its hold, lost is called
// from another goroutine, perhaps more than once: with store.ErrJobClosed, or with
// store.ErrStale, which also means that the session is not certainly alive.
func (k *Keeper) Watch(lease func() (l store.Lease, held bool), lost func(error)) (stop func()) {
	w := &run{lease: lease, lost: lost, began: time.Now()}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[w] = struct{}{}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.runs, w)
	}
}

// Return hands back the lease of a request that no run of this process has, as soon as
// the database accepts it.
func (k *Keeper) Return(l store.Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.back = append(k.back, l)
}

// Ran counts a run of a handler that has ended. Each renewal tells the others how many there were
// in the last minute, of each topic of the process (O9).
func (k *Keeper) Ran(topic string) { k.ran.add(topic) }

// Run opens the session and renews it; when others have ended it, it opens another. When
// ctx ends, Run ends the session, so that others need not wait for its lease. opened, if
// not nil, is closed when there is a session.
func (k *Keeper) Run(ctx context.Context, opened chan<- struct{}) error {
	var searching sync.WaitGroup
	defer searching.Wait()
	searching.Go(func() { k.search(ctx) })
	failing := false
	for ctx.Err() == nil {
		began := time.Now()
		fresh, err := k.round(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			k.cfg.Logger.Warn("the session of this process cannot be renewed; it begins nothing before it is", "error", err)
		case err == nil && failing:
			k.cfg.Logger.Info("the session of this process is renewed again")
		}
		k.fails(err)
		if failing = err != nil; fresh && !failing && opened != nil {
			close(opened)
			opened = nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(began.Add(k.pause(failing)))):
		}
	}
	k.end()
	return nil
}

// fails notes what became of a round.
func (k *Keeper) fails(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil || k.failing.err == nil {
		k.failing.since = time.Now()
	}
	k.failing.err = err
}

// Failing is why the session cannot be opened or renewed, and since when; nil: it can.
func (k *Keeper) Failing() (since time.Time, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failing.since, k.failing.err
}

// pause is the time from the beginning of a renewal to that of the next. It is shorter after one that failed, since two
// thirds of the lease are soon over, and if another process's session may be over earlier.
func (k *Keeper) pause(failing bool) time.Duration {
	every := k.cfg.Lease / 3
	switch {
	case k.own == nil:
		return every
	case failing:
		return every / 5
	}
	if next := k.own.Next(); next > 0 {
		every = min(every, next+time.Millisecond)
	}
	return every
}

// round opens the session, or renews it, looks after the runs, and hands leases back.
func (k *Keeper) round(ctx context.Context) (fresh bool, err error) {
	k.mu.Lock()
	given := k.given
	k.given = false
	k.mu.Unlock()
	if given && k.own != nil {
		k.lose()
	}
	now := time.Now()
	does := store.Doing{Ran: k.ran.lately(now), Early: k.earlyRuns(now)}
	if k.own == nil {
		return true, k.open(ctx)
	}
	fault.At(fault.K18, "session")
	began := time.Now()
	if k.cfg.Busy != nil {
		does.Busy = k.cfg.Busy()
	}
	does.Troubles = k.troubles()
	ended, err := k.renew(ctx, does)
	if errors.Is(err, store.ErrStale) {
		k.cfg.Logger.Warn("this process was not heard of for too long: others have what it held", "lease", k.cfg.Lease)
		k.lose()
		return true, k.open(ctx)
	}
	if err != nil {
		return false, err
	}
	k.heard(began)
	k.cfg.Suspend(k.own.Killers())
	k.count(k.own.Engines())
	for _, name := range ended {
		k.cfg.Logger.Warn("a process is not heard of any more: what it held is free", "process", name)
	}
	ctx, cancel := context.WithTimeout(ctx, k.patience)
	defer cancel()
	if err := errors.Join(k.look(ctx, began), k.handBack(ctx)); err != nil {
		k.cfg.Logger.Debug("what this process holds could not be looked after; the next renewal does", "error", err)
	}
	return false, nil
}

// renew renews the session within k.patience. A call that is cut off breaks its connection, and the next
// one has to connect first: it gets twice the time, up to the lease, after which a renewal is of no use.
// After an answer the next one gets twice the time that this one took.
func (k *Keeper) renew(ctx context.Context, does store.Doing) (ended []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.patience)
	defer cancel()
	began := time.Now()
	ended, err = k.own.Renew(ctx, does)
	k.patience = min(max(2*time.Since(began), k.cfg.Lease/3), k.cfg.Lease)
	return ended, err
}

// earlyRuns are the early runs of the minute before now.
func (k *Keeper) earlyRuns(now time.Time) []store.EarlyRuns {
	if k.cfg.Early == nil {
		return nil
	}
	runs := k.cfg.Early()
	all := make([]int64, 0, 3*len(runs))
	for _, x := range runs {
		all = append(all, x.Kept, x.Late, x.Dropped)
	}
	all = k.early.grown(now, all)
	for i := range runs {
		x := &runs[i]
		x.Kept, x.Late, x.Dropped = all[3*i], all[3*i+1], all[3*i+2]
	}
	return runs
}

// openTime bounds the opening of a session. It is long, because nothing depends on the
// session yet.
const openTime = 10 * time.Second

func (k *Keeper) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	began := time.Now()
	own, err := k.cfg.Store.OpenSession(ctx, k.cfg.Process)
	if err != nil {
		return err
	}
	k.cfg.Suspend(own.Killers())
	k.mu.Lock()
	k.own = own
	k.mu.Unlock()
	k.heard(began)
	return nil
}

// heard notes a renewal that began at the given time.
func (k *Keeper) heard(began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = began
	if k.late != nil {
		k.late.Stop()
	}
	k.late = time.AfterFunc(time.Until(began.Add(k.sure())), func() { k.tell(store.ErrStale) })
}

func (k *Keeper) troubles() []store.Trouble {
	if k.cfg.Troubles == nil {
		return nil
	}
	return k.cfg.Troubles()
}

func (k *Keeper) count(engines int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.engines = engines
}

// Engines is how many engines of the space live, as of the last renewal; 0: not known.
func (k *Keeper) Engines() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own == nil || time.Since(k.renewed) >= k.sure() {
		return 0
	}
	return k.engines
}

func (k *Keeper) lose() {
	k.mu.Lock()
	own := k.own
	k.own = nil
	k.mu.Unlock()
	k.tell(store.ErrStale)
	closed, cancel := context.WithCancel(context.Background())
	cancel()
	_ = own.End(closed) // with an ended context it only releases the connection
}

// tell calls lost for every run.
func (k *Keeper) tell(why error) {
	for _, w := range k.watching(time.Time{}) {
		w.lost(why)
	}
}

// watching are the runs that began before the given time; all of them if it is zero.
func (k *Keeper) watching(before time.Time) []*run {
	k.mu.Lock()
	defer k.mu.Unlock()
	runs := make([]*run, 0, len(k.runs))
	for w := range k.runs {
		if before.IsZero() || w.began.Before(before) {
			runs = append(runs, w)
		}
	}
	return runs
}

// look checks the leases of runs that have gone on for longer than the time between two
// renewals.
func (k *Keeper) look(ctx context.Context, now time.Time) error {
	var runs []*run
	var leases []store.Lease
	for _, w := range k.watching(now.Add(-k.cfg.Lease / 3)) {
		if l, held := w.lease(); held {
			runs, leases = append(runs, w), append(leases, l)
		}
	}
	lost, err := k.own.Lost(ctx, leases)
	for _, x := range lost {
		why := store.ErrStale
		if x.Closed {
			why = store.ErrJobClosed
		}
		runs[x.Place].lost(why)
	}
	return err
}

// searchEvery is the time between two searches, in leases.
const searchEvery = 10

// search hands back requests that the session holds and no run has, because an answer, or
// the reply to a call that took the request, was lost. Nobody else would look for them. A
// request counts when two searches have found it: after the first, the answer of a run
// that has ended may still be on its way.
func (k *Keeper) search(ctx context.Context) {
	before := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(searchEvery * k.cfg.Lease):
		}
		k.mu.Lock()
		own := k.own
		k.mu.Unlock()
		if own == nil {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, searchEvery*k.cfg.Lease)
		held, err := own.Held(bounded)
		cancel()
		if err != nil && ctx.Err() == nil {
			k.cfg.Logger.Debug("what this process holds could not be listed", "error", err)
		}
		before = k.handBackUnusedLeases(held, before)
	}
}

// handBackUnusedLeases hands back the held leases that no run has now and none had before. It returns
// the holders of those that it found for the first time.
func (k *Keeper) handBackUnusedLeases(held []store.Lease, before map[string]bool) (now map[string]bool) {
	running := map[string]bool{}
	for _, w := range k.watching(time.Time{}) {
		if l, is := w.lease(); is {
			running[l.Holder] = true
		}
	}
	now = map[string]bool{}
	for _, l := range held {
		switch {
		case running[l.Holder]:
		case before[l.Holder]:
			k.cfg.Logger.Warn("a request that no run has is handed back", "job", l.Job.String(), "request", l.Request.String())
			l.Looks = true // its answer may wait in a lane for longer than two searches
			k.Return(l)
		default:
			now[l.Holder] = true
		}
	}
	return now
}

// handBack hands the returned leases back; those that fail stay for the next time.
func (k *Keeper) handBack(ctx context.Context) error {
	k.mu.Lock()
	back := k.back
	k.back = nil
	k.mu.Unlock()
	var failed error
	for _, l := range back {
		if err := k.cfg.Store.HandBack(ctx, l); err != nil && !errors.Is(err, store.ErrStale) {
			failed = err
			k.Return(l)
		}
	}
	return failed
}

func (k *Keeper) end() {
	k.mu.Lock()
	own := k.own
	k.own = nil
	if k.late != nil {
		k.late.Stop()
	}
	k.mu.Unlock()
	if own == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.cfg.Lease)
	defer cancel()
	if err := own.End(ctx); err != nil {
		k.cfg.Logger.Debug("the session of this process ends by itself", "error", err)
	}
}
