package effect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// A handler goes on while the outcome of its effect is being recorded, so that the outcome and
// the start of the next effect share a commit (W3). No effect is called outside before the
// outcomes that the handler has seen are recorded: its start needs them (store.Lease.After), and
// so do the handler's answer and its waits.
//
// Where the run's answer can bring the last outcome with it (J8), that outcome waits for the end of the
// handler, or its next call, as long as Config.Hold. Then it goes alone.

// sent is an outcome that is being recorded.
type sent struct {
	call   *Call
	lease  store.Lease
	effect journal.Effect
	before *sent         // of the same run; nil once this one is settled
	alone  func()        // has it recorded; nil once it is under way
	timer  *time.Timer   // calls alone
	done   chan struct{} // closed when it is settled
	err    error         // why it is not recorded, once done is closed
}

// errOverruled says that a run has gone on with an outcome that is not the recorded one.
var errOverruled = errors.New("another outcome was recorded meanwhile")

// send has an outcome recorded, now or soon, and returns it to the handler at once.
func (s *Session) send(ctx context.Context, c *Call, e journal.Effect) ([]byte, error) {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	s.leaveAlone()
	t := &sent{call: c, effect: e, before: s.last, done: make(chan struct{})}
	t.lease = s.current()
	t.lease.After = s.after()
	alone := func() {
		s.cfg.Store.SendOutcome(ctx, t.lease, e, func(row store.EffectRow, err error) { s.arrive(t, &row, err) })
	}
	if s.cfg.Hold == 0 {
		alone()
	} else {
		t.alone = alone
		t.timer = time.AfterFunc(s.cfg.Hold, func() {
			s.sendMu.Lock()
			defer s.sendMu.Unlock()
			if s.last == t {
				s.leaveAlone()
			}
		})
	}
	s.last = t
	return replay(c, store.EffectRow{Key: e.Key, State: store.EffectCompleted, Result: e.Result, Error: e.Error})
}

// leaveAlone has the last outcome recorded without the run's answer, if it waits for that. The caller
// holds sendMu.
func (s *Session) leaveAlone() {
	if t := s.last; t != nil && t.alone != nil {
		t.stopWaiting()()
	}
}

// stopWaiting takes the outcome out of its waiting.
func (t *sent) stopWaiting() (alone func()) {
	t.timer.Stop()
	alone, t.alone = t.alone, nil
	return alone
}

// TakeLast gives the outcome that waits for the run's answer to who records both together, nil if there
// is none. What comes of it is said once: if it is an error, the outcome is then recorded alone. settled
// is called when it is known.
func (s *Session) TakeLast(settled func(error)) *store.Completion {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	t := s.last
	if t == nil || t.alone == nil {
		return nil
	}
	alone := t.stopWaiting()
	return &store.Completion{Lease: t.lease, Effect: t.effect, Told: func(row store.EffectRow, err error) {
		if err != nil {
			alone()
		} else {
			s.arrive(t, &row, nil)
		}
		settled(err)
	}}
}

// recorded says that the outcome, if there is one, is known to be recorded.
func (t *sent) recorded() bool {
	if t == nil {
		return true
	}
	select {
	case <-t.done:
		return t.err == nil
	default:
		return false
	}
}

// after is the effect whose outcome must be recorded before the run's next write; zero: none.
// The caller holds sendMu.
func (s *Session) after() (key journal.Digest) {
	if s.last.recorded() {
		s.last = nil
		return key
	}
	return s.last.effect.Key
}

// sending is the outcome that must be recorded before the run's next write, and its effect; nil and
// zero: none.
func (s *Session) sending() (*sent, journal.Digest) {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	s.leaveAlone()
	key := s.after()
	return s.last, key
}

// Flush waits until every outcome that the run has sent is recorded. Its error is in the verdict,
// too.
func (s *Session) Flush() error {
	if t, _ := s.sending(); t != nil {
		<-t.done
		return t.err
	}
	return nil
}

// arrive learns whether an outcome is recorded. It must return soon. A recorded one whose
// predecessor is not settled, or has an error, shares that: resend waits for it.
func (s *Session) arrive(t *sent, row *store.EffectRow, err error) {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrBehind) ||
		err == nil && !t.before.recorded() {
		go s.resend(t)
		return
	}
	s.settled(t, row, err)
}

// resend records an outcome that did not get through; one that is recorded stays as it is. Only this
// process knows what was done
// outside: so it does not wait until the handler asks, and what was done is recorded even if the
// outcome before is not. That one's error then stands for both.
func (s *Session) resend(t *sent) {
	var before error
	if b := t.before; b != nil {
		if <-b.done; b.err != nil {
			before = fmt.Errorf("the one before is not recorded: %w", b.err)
		}
		if before != nil && t.call.class == effects.Pure {
			s.settled(t, nil, before)
			return
		}
		t.lease.After = journal.Digest{}
	}
	var row store.EffectRow
	err := insist(context.Background(), finishAttempts, func(ctx context.Context) (err error) {
		row, err = s.cfg.Store.FinishEffect(ctx, t.lease, t.effect, false)
		return err
	})
	s.settled(t, &row, cmp.Or(before, err))
}

// settled ends the recording of an outcome.
func (s *Session) settled(t *sent, row *store.EffectRow, err error) {
	switch {
	case err != nil:
	case row.State != store.EffectCompleted: // an operator decided meanwhile that it was not done
		err = store.ErrStale
	case row.Holder != t.lease.Holder:
		err = errOverruled
	}
	if err == nil {
		s.count(t.call, "completed")
	} else {
		t.err = s.trouble(t.call, "record its outcome", err)
	}
	t.before = nil
	close(t.done)
}
