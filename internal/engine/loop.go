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

// policy is what a loop does about work that needs what another transaction holds.
type policy uint8

const (
	policyBatch policy = iota // it carries batches, and leaves such work to a loop that sorts
	policySort                // it carries units by themselves, and leaves what is held to a loop that waits
	policyWait                // it carries units by themselves, and waits as long as a commit may take
)

func (p policy) waits() bool { return p == policyWait }

// loop carries batches on one connection, one after another (L1).
type loop struct {
	*Committer
	policy policy
	lanes  chan fetched
	starts chan fetched
	// calls on effect chains of its share of the jobs, and signals of its share of the mailboxes
	own chan *call
	tx  store.Committer // nil until it is needed, and after a lost connection
	// progress is what the loop does now.
	progress progress
	taken    gathered // the buffers of gather, used again and again
	// commits is how long its commits take, a moving average.
	commits time.Duration
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

// handle decodes what was gathered and carries it, calls before messages. A message that came too
// often is carried alone, so that one that kills its process takes no other with it (1.6).
func (l *loop) handle(ctx context.Context, g gathered) {
	var together, signals, alone []item
	for _, x := range g.calls {
		switch {
		case x.box != nil:
			signals = append(signals, x)
		case l.aside.has(x.of): // it is known to be held: the batch does not try
			l.aside.take(ctx, []item{x})
		default:
			together = append(together, x)
		}
	}
	for _, d := range g.deliveries {
		if d.Count() > 1 {
			l.cfg.Observer.Count(observer.MetricRedelivered, 1)
		}
		if x := completionOf(d.Delivery); x != nil {
			if m := l.bringing(d, x); m != nil {
				together = append(together, m)
			}
			continue
		}
		if d.Err() == nil && d.Message().Header.Epoch != l.pub.Epoch.Load() {
			l.otherEpoch(d)
			continue
		}
		m, err := decode(d.Delivery)
		if m != nil {
			m.stop = d.stop
			l.warnRefused(m)
		}
		switch {
		case err != nil:
			letter := collation.DeadLetter{Reason: reasonUndecodable, Message: err.Error(), Unclaimed: true}
			together = append(together, l.poison(d, letter, nil))
		case m.stolen(nil):
			l.repel(m)
		case m.msg.Kind == journal.MessageSignal:
			signals = append(signals, m)
		case m.msg.Alone:
			alone = append(alone, m)
		default:
			together = append(together, m)
		}
	}
	l.carry(ctx, together)
	l.alone(ctx, alone)
	l.carry(ctx, signals)
}

// alone carries items one by one, each in its own transaction. Each may wait for the database. Once
// the engine shall stop, the first item that does not get through sends the others back (T10).
func (l *loop) alone(ctx context.Context, items []item) {
	for i, it := range items {
		if !l.carry(ctx, items[i:i+1]) && it.stopping() {
			l.giveUp(items[i+1:], errStopping)
			return
		}
	}
}

// errStopping says why messages are handed back untried.
var errStopping = errors.New("the engine stops and the database is away")

// carry brings the items to their end: committed, published, answered and acked, or handed back.
// through is false if the last of them was handed back.
func (l *loop) carry(ctx context.Context, items []item) (through bool) {
	p, follow := patience{since: time.Now()}, true
	for len(items) > 0 {
		bounded, cancel := context.WithTimeout(ctx, transactTime)
		b, err := l.transact(bounded, items, follow)
		cancel()
		l.progress.ended(err)
		if err == nil {
			items = l.settle(ctx, b)
			continue
		}
		l.hear(items, err)
		follow = false // what lost once becomes rows again (L2)
		switch {
		case b.carriesMore() && !errors.Is(err, store.ErrLost) && !unanswered(err) && !errors.Is(err, store.ErrUnknown):
			continue // what the items have caused may be what is refused
		case errors.Is(err, store.ErrBusy) && !l.policy.waits():
			if items = l.stepAside(ctx, items); len(items) > 0 {
				l.pause(1, time.Millisecond)
			}
		case l.again(&p, &items, err):
		case refused(err) && len(items) > 1:
			l.alone(ctx, items)
			return true
		case refused(err) && items[0].refuse(err):
			l.log.Error("the store refuses a message: it waits for a person", "message", items[0].about().Message.String(), "error", err)
		default:
			l.giveUp(items, err)
			return false
		}
	}
	return true
}

// hear tells the items what a test-and-set was lost to.
func (l *loop) hear(items []item, err error) {
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
	for _, it := range items {
		it.lose(lost)
	}
}

// stepAside leaves items that may wait for others to the aside, and returns the rest, which is
// tried again: the items of the highest rank go first.
func (l *loop) stepAside(ctx context.Context, items []item) (rest []item) {
	if l.policy == policySort || len(items) == 1 {
		l.aside.take(ctx, items)
		return nil
	}
	highest := 0
	for _, it := range items {
		highest = max(highest, it.rank())
	}
	var leaves []item
	for _, it := range items {
		if it.rank() == highest {
			leaves = append(leaves, it)
		} else {
			rest = append(rest, it)
		}
	}
	l.sort.take(ctx, leaves)
	return rest
}

// patience counts how often a batch lost a test-and-set, and how often it did not reach the
// database. The two have separate limits.
type patience struct {
	lost, away int
	since      time.Time
}

// again reports whether the batch is tried once more, and waits before. A lost test-and-set is
// decided again at once (C3). The database is waited for (C10), by calls only a few times.
func (l *loop) again(p *patience, items *[]item, err error) bool {
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
	var stay, leave []item
	for _, it := range *items {
		if it.giveUp(err, p.since, l.ending.Load()) {
			leave = append(leave, it)
		} else {
			stay = append(stay, it)
		}
	}
	l.giveUp(leave, l.blocked(err))
	if *items = stay; len(stay) == 0 {
		return false
	}
	l.log.Warn("a batch waits for the database", "items", len(stay), "error", err)
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
	if l.policy.waits() && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrBusy)) {
		return &blockedError{err}
	}
	return err
}

// pause waits with exponential backoff and jitter, at most two seconds.
func (l *loop) pause(n int, unit time.Duration) {
	time.Sleep(backoff.Delay(n, unit, 2*time.Second, l.cfg.Jitter))
}

// giveUp ends the items that cannot be carried: calls are answered, messages are handed back.
func (l *loop) giveUp(items []item, err error) {
	messages := 0
	for _, it := range items {
		if _, is := it.(*message); is {
			messages++
		}
		it.settle(l, nil, fateEnded, err)
	}
	if messages == 0 {
		return
	}
	level := slog.LevelError
	if errors.Is(err, store.ErrBusy) { // others hold what they need: the messages come again
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "messages are handed back", "messages", messages, "error", err)
}

// connection returns the loop's connection. After a loss it opens a new one, with a new session
// (L1).
func (l *loop) connection(ctx context.Context) (store.Committer, error) {
	if l.tx == nil {
		tx, err := l.cfg.Store.Committer(ctx, l.policy.waits())
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
