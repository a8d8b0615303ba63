package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Bounds of a loop.
const (
	// maxLost is how often a batch is decided again after a lost test-and-set. Then its work is
	// carried one by one, and after that handed back (C3).
	maxLost = 8
	// holdOn bounds how long a batch waits in memory for the database; then it is handed back
	// (C10).
	holdOn = 20 * time.Second
	// transactTime bounds one transaction.
	transactTime = 30 * time.Second
	// maxNak bounds the delay with which a message is handed back.
	maxNak = 5 * time.Second
	// laterNak is the least delay of a message that has to wait for another one of its instance;
	// the most is three times that.
	laterNak = 50 * time.Millisecond
	// laterTimes is the delivery from which such a message is left to its row, and one of an epoch
	// that does not come.
	laterTimes = 5
	// followNak is the delay of a message of the next epoch: all processes follow within about a
	// second (S13).
	followNak = time.Second
)

// loop carries batches on one connection, one after another (L1). A patient loop waits for
// locks of others. One that sorts carries units of the aside, and does not wait for long.
type loop struct {
	*Committer
	patient bool
	sorts   bool
	lanes   chan fetched
	starts  chan fetched
	// calls on effect chains of its share of the jobs, and signals of its share of the mailboxes
	own chan *call
	tx  store.Committer // nil until it is needed, and after a lost connection
	// progress is what the loop does now.
	progress progress
	taken    gathered // the buffers of gather, used again and again
}

// gathered is what a loop takes at once.
type gathered struct {
	deliveries []fetched
	calls      []*call
	bytes      int // of calls
}

func (g *gathered) size() int { return len(g.deliveries) + len(g.calls) }

// clear empties the buffers, and keeps them.
func (g *gathered) clear() {
	clear(g.deliveries)
	clear(g.calls)
	g.deliveries, g.calls, g.bytes = g.deliveries[:0], g.calls[:0], 0
}

// maxBytes bounds the bytes of large calls in one batch, unless a single one is larger.
const maxBytes = 4 << 20

// run carries what comes until ctx ends, and then as much as was queued by then.
func (l *loop) run(ctx context.Context) error {
	defer l.close()
	working := context.WithoutCancel(ctx)
	for l.gather(ctx) {
		l.handle(working, l.taken)
	}
	for left := len(l.lanes) + len(l.starts) + len(l.own) + len(l.calls); left > 0; left -= l.taken.size() {
		l.taken.clear()
		if l.fill(l.cfg.MaxBatch, l.cfg.MaxBatch); l.taken.size() == 0 {
			break
		}
		l.handle(working, l.taken)
	}
	return nil
}

func (l *loop) close() {
	if l.tx != nil {
		l.tx.Close()
	}
}

// gather waits for one delivery or call, and takes what else is there, up to a batch. Half of a
// batch is reserved for deliveries and half for calls, and of these half for effects and signals
// and half for all others, so that none starves (W3). Messages of running jobs go before new jobs
// (T5).
func (l *loop) gather(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	g := &l.taken
	g.clear()
	half := (l.cfg.MaxBatch + 1) / 2
	l.fill(half, half)
	for g.size() == 0 {
		if ctx.Err() != nil {
			return false
		}
		select {
		case <-ctx.Done():
		case d := <-l.lanes:
			g.deliveries = append(g.deliveries, d)
		case x := <-l.calls:
			g.call(x)
		case x := <-l.own:
			g.call(x)
		case d := <-l.starts:
			g.deliveries = append(g.deliveries, d)
		}
		l.fill(half, half)
	}
	l.fill(l.cfg.MaxBatch, l.cfg.MaxBatch)
	return true
}

// fill takes what is there, up to the given numbers and to a batch in all.
func (l *loop) fill(deliveries, calls int) {
	g := &l.taken
	room := func() bool { return g.size() < l.cfg.MaxBatch }
	for _, from := range []chan fetched{l.lanes, l.starts} {
		for more := true; more && len(g.deliveries) < deliveries && room(); {
			select {
			case d := <-from:
				g.deliveries = append(g.deliveries, d)
			default:
				more = false
			}
		}
	}
	for _, f := range []struct {
		from         chan *call
		calls, bytes int
	}{{l.own, (calls + 1) / 2, maxBytes / 2}, {l.calls, calls, maxBytes}, {l.own, calls, maxBytes}} {
		for more := true; more && len(g.calls) < f.calls && room() && g.bytes < f.bytes; {
			select {
			case x := <-f.from:
				g.call(x)
			default:
				more = false
			}
		}
	}
}

func (g *gathered) call(x *call) {
	if x.take() {
		g.calls = append(g.calls, x)
		g.bytes += x.size
	}
}

// handle decodes what was gathered and carries it. A message that came too often is carried
// alone, so that one that kills its process takes no other with it (1.6).
func (l *loop) handle(ctx context.Context, g gathered) {
	var together, signals work
	for _, x := range g.calls {
		switch {
		case x.box != nil:
			signals.calls = append(signals.calls, x)
		case l.aside.has(x.of): // it is known to be held: the batch does not try
			l.aside.take(ctx, work{calls: []*call{x}})
		default:
			together.calls = append(together.calls, x)
		}
	}
	var alone []*item
	for _, d := range g.deliveries {
		if d.Count() > 1 {
			l.cfg.Observer.Count(observer.MetricRedelivered, 1)
		}
		if d.Err() == nil && d.Message().Header.Epoch != l.pub.Epoch.Load() {
			l.otherEpoch(d)
			continue
		}
		it, err := decode(d.Delivery)
		if it != nil {
			it.stop = d.stop
			l.warnRefused(it)
		}
		switch {
		case err != nil:
			together.calls = append(together.calls, l.poison(d,
				collation.DeadLetter{Reason: reasonUndecodable, Message: err.Error(), Unclaimed: true}, nil))
		case it.stolen(nil):
			l.repel(it)
		case it.msg.Kind == journal.MessageSignal:
			signals.items = append(signals.items, it)
		case it.msg.Alone:
			alone = append(alone, it)
		default:
			together.items = append(together.items, it)
		}
	}
	l.carry(ctx, together)
	l.alone(ctx, work{items: alone})
	l.carry(ctx, signals)
}

// alone carries the work one by one, each in its own transaction.
func (l *loop) alone(ctx context.Context, w work) {
	for _, x := range w.calls {
		l.carry(ctx, work{calls: []*call{x}})
	}
	l.singly(w.items, func(one []*item) bool { return l.carry(ctx, work{items: one}) })
}

// singly ends items one after another. Each may wait for the database. Once the engine shall
// stop, the first item that does not get through sends the others back (T10).
func (l *loop) singly(items []*item, end func([]*item) (through bool)) {
	for i, it := range items {
		if !end([]*item{it}) && stopping(items) {
			if rest := items[i+1:]; len(rest) > 0 {
				l.handBack(rest, errStopping)
			}
			return
		}
	}
}

// errStopping says why messages are handed back untried.
var errStopping = errors.New("the engine stops and the database is away")

// carry brings the work to its end: committed, published, answered and acked, or handed back.
// through is false if the last of it was handed back.
func (l *loop) carry(ctx context.Context, w work) (through bool) {
	p := patience{since: time.Now()}
	for !w.empty() {
		bounded, cancel := context.WithTimeout(ctx, transactTime)
		b, err := l.transact(bounded, w)
		cancel()
		l.progress.ended(err)
		if err == nil {
			w = l.settle(ctx, b)
			continue
		}
		l.hear(w, err)
		switch {
		case errors.Is(err, store.ErrBusy) && !l.patient:
			if w = l.stepAside(ctx, w); !w.empty() {
				l.pause(1, time.Millisecond)
			}
		case l.again(&p, &w, err):
		case refused(err) && w.size() > 1:
			l.alone(ctx, w)
			return true
		case refused(err) && len(w.items) > 0 && w.items[0].reject == nil:
			l.log.Error("the store refuses a message: it waits for a person", "message", w.items[0].msg.GUID.String(), "error", err)
			w.items[0].reject = err
		default:
			l.giveUp(w, err)
			return false
		}
	}
	return true
}

// hear tells the work what a test-and-set was lost to.
func (l *loop) hear(w work, err error) {
	lost, named := errors.AsType[*store.LostError](err)
	if !named {
		return
	}
	if lost.Session && l.cfg.Session != nil {
		id, _ := l.cfg.Session.Current()
		l.cfg.Session.Ended(id)
	}
	for _, name := range lost.Flows {
		l.flows.Forget(name)
	}
	for _, x := range w.calls {
		if x.lost != nil {
			x.lost(lost)
		}
	}
	for _, it := range w.items {
		it.lose(lost)
	}
}

// stepAside leaves work that may wait for others to the aside, and returns the rest, which is
// tried again. Calls that only write on effect chains are kept longest: they wait for nobody.
func (l *loop) stepAside(ctx context.Context, w work) work {
	if l.sorts || w.size() == 1 {
		l.aside.take(ctx, w)
		return work{}
	}
	var chains, others []*call
	for _, x := range w.calls {
		if x.effect != nil {
			chains = append(chains, x)
		} else {
			others = append(others, x)
		}
	}
	switch {
	case len(others) > 0 && w.size() > len(others):
		l.sort.take(ctx, work{calls: others}) // mostly a key that a caller's transaction is just starting
		return work{items: w.items, calls: chains}
	case len(w.items) > 0 && len(chains) > 0:
		l.sort.take(ctx, work{items: w.items})
		return work{calls: chains}
	}
	l.sort.take(ctx, w)
	return work{}
}

// patience counts how often a batch lost a test-and-set, and how often it did not reach the
// database. The two have separate limits.
type patience struct {
	lost, away int
	since      time.Time
}

// again reports whether the batch is tried once more, and waits before. A lost test-and-set is
// decided again at once (C3). The database is waited for (C10), by calls only a few times.
func (l *loop) again(p *patience, w *work, err error) bool {
	switch {
	case errors.Is(err, store.ErrLost) && p.lost < maxLost:
		p.lost++
		l.cfg.Observer.Count(observer.MetricDecidedAgain, 1)
		if _, named := errors.AsType[*store.LostError](err); !named {
			l.pause(p.lost, time.Millisecond)
		}
		return true
	case refused(err):
		return false
	}
	w.calls = w.away(l.blocked(err), l.ending.Load())
	if len(w.items) > 0 && (time.Since(p.since) >= holdOn || stopping(w.items)) {
		return false
	}
	if w.empty() {
		return true
	}
	l.log.Warn("a batch waits for the database", "messages", len(w.items), "calls", len(w.calls), "error", err)
	p.away++
	l.pause(p.away, 50*time.Millisecond)
	return true
}

// blockedError says that another transaction held what a patient loop waited for as long as a commit
// may take.
type blockedError struct{ error }

func (e *blockedError) Unwrap() error { return e.error }

// blocked marks an error of a patient loop that has waited for a lock in vain.
func (l *loop) blocked(err error) error {
	if l.patient && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrBusy)) {
		return &blockedError{err}
	}
	return err
}

// away gives up the calls that did not reach the database too often, or all when the committer
// ends.
func (w *work) away(err error, ending bool) (stay []*call) {
	for _, x := range w.calls {
		if x.away(err) || ending {
			x.end(x.held(err))
		} else {
			stay = append(stay, x)
		}
	}
	return stay
}

// pause waits with exponential backoff and jitter, at most two seconds.
func (l *loop) pause(n int, unit time.Duration) {
	time.Sleep(backoff.Delay(n, unit, 2*time.Second, l.cfg.Jitter))
}

// giveUp ends the work that cannot be carried.
func (l *loop) giveUp(w work, err error) {
	for _, x := range w.calls {
		x.end(err)
	}
	if len(w.items) > 0 {
		l.handBack(w.items, err)
	}
}

func (l *loop) handBack(items []*item, err error) {
	level := slog.LevelError
	if errors.Is(err, store.ErrBusy) { // others hold what they need: the messages come again
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "messages are handed back", "messages", len(items), "error", err)
	for _, it := range items {
		_ = it.delivery.Nak(maxNak/2 + l.cfg.Jitter(maxNak/2))
	}
}

// connection returns the loop's connection. After a loss it opens a new one, with a new session
// (L1).
func (l *loop) connection(ctx context.Context) (store.Committer, error) {
	if l.tx == nil {
		tx, err := l.cfg.Store.Committer(ctx, l.patient)
		if err != nil {
			return nil, err
		}
		l.tx = tx
	}
	return l.tx, nil
}

// abandon rolls the transaction back and returns cause. It gives up a connection that cannot
// even roll back, and its session with it.
func (l *loop) abandon(ctx context.Context, cause error) error {
	if l.tx == nil {
		return cause
	}
	err := l.tx.Rollback(ctx)
	if err != nil || errors.Is(cause, store.ErrUnavailable) || errors.Is(cause, store.ErrUnknown) {
		l.tx.Close()
		l.tx = nil
	}
	if cause == nil && err != nil {
		l.log.Debug("rollback of an empty batch", "error", err)
	}
	return cause
}
