package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Times of the sweeper (T2).
const (
	// maxAgain bounds the backoff between two looks at one row.
	maxAgain = 5 * time.Minute
	// anyway is when a row is sent again although its queue still seems to hold it.
	anyway = 15 * time.Minute
	// untimely is how much later, in µs, a message may be published than one behind it in the
	// same queue: committers publish after their commits, not in the order of their clocks.
	untimely = collation.Micros(2_000_000)
	// brisk is the pause between two looks while there is something to find, and for briskFor
	// after an announcement: a process announces at most once a second (W9).
	brisk    = 200 * time.Millisecond
	briskFor = 2 * time.Second
	// sweepLeast is the least pause between two looks.
	sweepLeast = 20 * time.Millisecond
	// sweepTime bounds one look, and what follows from it, so that a server that falls silent
	// does not stop a sweep until the network gives up.
	sweepTime = time.Minute
)

// sweeper sends due rows: retries and timers when their time has come, and rows whose message
// was lost. Any number of sweepers share a space; a row is claimed by a test-and-set on its
// publication.
type sweeper struct {
	e          *Engine
	briskUntil time.Time
	next       time.Duration // from the last look until the next row is due; 0: no row
	unserved   unserved
}

func (s *sweeper) run(ctx context.Context) error {
	log := s.e.cfg.Logger
	failing := false
	for ctx.Err() == nil {
		full, err := s.sweep(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !failing: // logged once per series
			log.Warn("sweeps fail; what is due waits until one succeeds", "error", err)
		case err == nil && failing:
			log.Info("sweeps succeed again")
		}
		failing = err != nil
		if full && err == nil {
			continue
		}
		if s.rest(ctx) {
			s.briskUntil = time.Now().Add(briskFor)
		}
	}
	return nil
}

// rest waits for the next look: a pause, until the next row is due, or until the alarm rings.
// told: it rang for an announcement.
func (s *sweeper) rest(ctx context.Context) (told bool) {
	wait := s.e.cfg.Sweep
	if time.Now().Before(s.briskUntil) {
		wait = min(wait, brisk)
	}
	wait = wait - wait/10 + s.e.cfg.Jitter(wait/5+1)
	if s.next > 0 {
		wait = min(wait, max(s.next, sweepLeast))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	alarm := s.e.committer.alarm
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return told
		case <-alarm.rung:
			at, now := alarm.take()
			told = told || now
			if now {
				at = began
			}
			wait = min(wait, max(at.Sub(began), sweepLeast))
			timer.Reset(max(wait-time.Since(began), 0))
		}
	}
}

// alarm tells the sweeper of its process when to look: at once, or when a row that was
// committed here is due.
type alarm struct {
	mu   sync.Mutex
	at   time.Time // zero: no such time
	now  bool
	rung chan struct{} // capacity 1
}

func newAlarm() *alarm { return &alarm{rung: make(chan struct{}, 1)} }

// ring makes the sweeper look at once.
func (a *alarm) ring() {
	a.mu.Lock()
	a.now = true
	a.mu.Unlock()
	a.wake()
}

// set makes the sweeper look at that time, or before.
func (a *alarm) set(at time.Time) {
	a.mu.Lock()
	sooner := a.at.IsZero() || at.Before(a.at)
	if sooner {
		a.at = at
	}
	a.mu.Unlock()
	if sooner {
		a.wake()
	}
}

func (a *alarm) wake() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

func (a *alarm) take() (at time.Time, now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, now = a.at, a.now
	a.at, a.now = time.Time{}, false
	return at, now
}

// sweep looks once; full: more rows are due than one look takes.
func (s *sweeper) sweep(ctx context.Context) (full bool, err error) {
	if err := s.noteRefused(ctx); err != nil {
		return false, err
	}
	due, t, err := s.look(ctx)
	if s.next = t.Next; err != nil || len(due) == 0 && !t.Late {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	st := s.e.cfg.Store
	if t.Late {
		late := s.overdue(ctx) // its failure delays no other row
		defer func() { err = errors.Join(late, err) }()
	}
	if len(due) == 0 {
		return false, nil
	}
	s.briskUntil = time.Now().Add(brisk)
	due, blind := s.exhaust(ctx, due)
	s.unserved.look(ctx, s.e, due)
	claims, unseen := s.decide(ctx, due)
	blind = errors.Join(blind, unseen)
	if len(claims) == 0 {
		return false, blind
	}
	out, err := st.Claim(ctx, claims)
	for i := range claims {
		s.e.committer.cache.drop(claims[i].Row.Job) // the claim changed the row (W6)
	}
	if err != nil {
		return false, err
	}
	s.e.cfg.Observer.Count(observer.MetricResent, int64(len(out)))
	// A sweeper that won no claim leaves the rows to those that did.
	full = len(due) == sweepLimit && (len(out) > 0 || !sends(claims))
	out, changed := s.quarantineAllChanged(ctx, out)
	return full, errors.Join(blind, changed, s.e.pub.Publish(ctx, out, Origin{}))
}

func (s *sweeper) look(ctx context.Context) ([]store.DueRow, store.Timing, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return s.e.cfg.Store.Due(ctx, sweepLimit)
}

func sends(claims []store.Claim) bool {
	return slices.ContainsFunc(claims, func(c store.Claim) bool { return c.Send })
}

// decide says for each due row whether to send it now. The first publication of a turn is sent
// when due. Before a re-send the queues are looked at, so that a mere backlog is not doubled. A
// row whose queue cannot be read stays due; blind is why. If such rows could fill every look
// they are put off, so that they delay no others.
func (s *sweeper) decide(ctx context.Context, due []store.DueRow) (claims []store.Claim, blind error) {
	look := lookout{bus: s.e.cfg.Bus, seen: map[transport.Destination]sight{}, blind: map[transport.Kind]error{}}
	claims = make([]store.Claim, 0, len(due))
	session := int64(0)
	if own := s.e.cfg.Session; own != nil {
		session, _ = own.Current()
	}
	for _, r := range due {
		again := s.again(r)
		c := store.Claim{Row: r, Send: true, Again: again, Session: session}
		if r.Publication > 0 && r.TurnSent == r.Turn && r.Now-r.PublishedAt < collation.Micros(anyway.Microseconds()) {
			waits, err := s.waits(ctx, &look, r)
			switch {
			case err == nil:
				c.Send = !waits
			case len(due) < sweepLimit:
				continue
			default:
				c.Send, c.Again = false, s.e.cfg.Resend
			}
		}
		if c.Send {
			if wait := s.e.pub.refused.wait(s.e.pub.destination(&collation.Row{
				Kind: r.Kind, Topic: r.Topic,
				Job: r.Job,
			}), time.Now()); wait > 0 {
				c.Send, c.Again = false, wait
			}
		}
		claims = append(claims, c)
	}
	return claims, look.why
}

// waits reports whether a queue on the row's way holds a message as old as the row's last
// publication; that may be the row's own (T2).
func (s *sweeper) waits(ctx context.Context, look *lookout, r store.DueRow) (bool, error) {
	at := []transport.Destination{s.e.pub.destination(&collation.Row{Kind: r.Kind, Topic: r.Topic, Job: r.Job})}
	if r.Kind == journal.MessageRequest {
		at = append(at, transport.ToLane(wire.LaneOf(r.Job, s.e.cfg.Lanes)))
	}
	for _, d := range at {
		oldest, err := look.at(ctx, d)
		if err != nil {
			return false, err
		}
		if oldest.found && oldest.publishedAt <= r.PublishedAt+untimely {
			return true, nil
		}
	}
	return false, nil
}

// again is the backoff until the next look at the row. It doubles with every publication, but
// is at most twice the time since the last one, with jitter. The first publication of a turn
// begins anew: the times of earlier attempts say nothing about this message.
func (s *sweeper) again(r store.DueRow) time.Duration {
	since := time.Duration(0)
	if r.TurnSent == r.Turn {
		since = time.Duration(r.Now-r.PublishedAt) * time.Microsecond
	}
	d := backoff.Delay(min(r.Publication, 8), s.e.cfg.Resend, min(max(2*since, s.e.cfg.Resend), maxAgain), nil)
	return d - d/10 + s.e.cfg.Jitter(d/5+1)
}

// lookout asks each queue once per sweep. It asks no queue of a stream that did not answer,
// since that can take seconds.
type lookout struct {
	bus   transport.Bus
	seen  map[transport.Destination]sight
	blind map[transport.Kind]error
	why   error // the errors of blind, joined
}

type sight struct {
	publishedAt collation.Micros
	found       bool
}

func (l *lookout) at(ctx context.Context, d transport.Destination) (sight, error) {
	if known, ok := l.seen[d]; ok {
		return known, nil
	}
	if err := l.blind[d.Kind]; err != nil {
		return sight{}, err
	}
	at, found, err := l.bus.Oldest(ctx, d)
	if err != nil {
		l.blind[d.Kind], l.why = err, errors.Join(l.why, err)
		return sight{}, err
	}
	s := sight{collation.Micros(at), found}
	l.seen[d] = s
	return s, nil
}
