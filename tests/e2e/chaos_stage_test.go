//go:build chaos

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/workers"
)

// stage is where one scene plays: jobs, what the test does to them meanwhile, and
// what must come of them. Its calls repeat what a fault refused.
type stage struct {
	c    *chaos
	ctx  context.Context
	name string // the scene's; a prefix of the keys of its jobs
	dice *rand.Rand
}

// scenes are those of a round, and what they leave behind.
type scenes struct {
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	started map[string]bool // keys of jobs without a parent
	once    []string        // what must have been applied outside, once
	atMost  []string        // what may have been asked for, once
	perhaps []string        // what may have been applied, once
	undone  [][2]string     // a booking, and what must have been applied if it was
	orders  [][]string      // what must have been applied one after the other
	moves   []string        // ids of the bank's moves that must have been made
	kept    int             // signals that nobody was there to take
}

// play starts a scene.
func (c *chaos) play(name string, n int, scene func(*stage)) {
	s := &stage{c: c, ctx: c.scenes.ctx, name: fmt.Sprintf("%s-%d", name, n)}
	s.dice = c.dice(s.name)
	c.scenes.wg.Go(func() { scene(s) })
	c.count("scene " + name)
}

// curtain waits until every scene is over (I11).
func (c *chaos) curtain() {
	stop := time.AfterFunc(patience, c.scenes.cancel)
	defer stop.Stop()
	c.scenes.wg.Wait()
}

// fail ends the scene.
func (s *stage) fail(job *quipu.Job, format string, args ...any) {
	s.c.e.t.Errorf("scene %s: %s", s.name, fmt.Sprintf(format, args...))
	if job != nil {
		s.c.stranded(map[string]quipu.Job{job.Key: *job})
	}
	runtime.Goexit()
}

// until repeats do until it says that it is done.
func (s *stage) until(what string, job *quipu.Job, do func() (bool, error)) {
	for {
		done, err := do()
		if done && err == nil {
			return
		}
		if !pause(s.ctx, between(s.dice, chaosLook/4, chaosLook)) {
			s.fail(job, "I11: it still waits for %s: %v", what, err)
		}
	}
}

// wait lets some time pass, up to most.
func (s *stage) wait(most time.Duration) { pause(s.ctx, between(s.dice, 0, most)) }

// start starts a job whose key is the scene's name and more.
func (s *stage) start(flow, more string, input any) (job quipu.Job) {
	key := s.name + more
	s.until("the start of "+key, nil, func() (bool, error) {
		var err error
		job, err = s.c.rt.Start(s.ctx, flow, key, input)
		if already := (*quipu.ErrAlreadyStarted)(nil); errors.As(err, &already) {
			err = nil
		}
		return true, err
	})
	s.also(key)
	return job
}

// applied says that what was applied outside, once.
func (s *stage) applied(what string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.once = append(s.c.scenes.once, what)
}

// atMost says that what may have been asked for outside, once.
func (s *stage) atMost(what string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.atMost = append(s.c.scenes.atMost, what)
}

// perhaps says that what may have been applied outside, once.
func (s *stage) perhaps(what string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.perhaps = append(s.c.scenes.perhaps, what)
}

// cancelled says that a booking that was made must have been cancelled, once.
func (s *stage) cancelled(book, cancel string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.undone = append(s.c.scenes.undone, [2]string{book, cancel})
}

// inOrder says that these must have been applied one after the other.
func (s *stage) inOrder(what ...string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.orders = append(s.c.scenes.orders, what)
}

// also says that a job with the key was started.
func (s *stage) also(key string) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.started[key] = true
}

// kept says that n signals are left which nobody takes.
func (s *stage) kept(n int) {
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	s.c.scenes.kept += n
}

// signal sends a signal under the id until it hears what became of it, and then
// perhaps again: that must change nothing.
func (s *stage) signal(topic, key, id string, payload any, opts ...quipu.SignalOption) {
	s.send(topic, key, id, payload, opts)
	for s.dice.IntN(2) == 0 {
		if again := s.send(topic, key, id, payload, opts); !again.Duplicate || again.Reached > 0 {
			s.fail(nil, "C8: signal %s to %s, repeated: %+v", id, key, again)
		}
	}
}

func (s *stage) send(topic, key, id string, payload any, opts []quipu.SignalOption) (res quipu.SignalResult) {
	s.until("signal "+id, nil, func() (bool, error) {
		var err error
		res, err = s.c.rt.Signal(s.ctx, topic, key, payload, append([]quipu.SignalOption{quipu.IdempotencyKey(id)}, opts...)...)
		return true, err
	})
	return res
}

// became is what became of a signal by now.
func (s *stage) became(topic, key, id string) quipu.SignalState {
	res := s.send(topic, key, id, nil, nil)
	if !res.Duplicate {
		s.fail(nil, "C8: signal %s to %s was forgotten: %+v", id, key, res)
	}
	return res.State
}

// interrupt interrupts the job, and perhaps once more.
func (s *stage) interrupt(job quipu.Job, opts ...quipu.InterruptOption) {
	for again := false; !again || s.dice.IntN(2) == 0; again = true {
		s.until("the interrupt of "+job.Key, &job, func() (bool, error) {
			res, err := s.c.rt.Interrupt(s.ctx, job.Key, append([]quipu.InterruptOption{quipu.IdempotencyKey("stop"), quipu.Reason("enough")}, opts...)...)
			if err == nil && again && !res.Duplicate {
				s.fail(&job, "C8: interrupt of %s, repeated: %+v", job.Key, res)
			}
			return true, err
		})
	}
}

// view reads a job.
func (s *stage) view(job quipu.Job) (v *store.JobView) {
	s.until("a look at "+job.Key, &job, func() (bool, error) {
		var err error
		v, err = s.c.rt.Job(s.ctx, job)
		return true, err
	})
	return v
}

// end waits for the job's end.
func (s *stage) end(job quipu.Job) (v *store.JobView) {
	s.until("the end of "+job.Key, &job, func() (bool, error) {
		var err error
		v, err = s.c.rt.Job(s.ctx, job)
		return err == nil && v.Ended, err
	})
	return v
}

// gives waits for the job's end and compares its output.
func (s *stage) gives(job quipu.Job, want string) {
	v := s.end(job)
	var got, like any
	if v.State != journal.JobCompleted {
		s.fail(&job, "job %s ended %s with %d: %+v", job.Key, v.State, v.Code, v.Error)
	}
	if err := errors.Join(json.Unmarshal(v.Output, &got), json.Unmarshal([]byte(want), &like)); err != nil || !assert.ObjectsAreEqual(like, got) {
		s.fail(&job, "job %s gives %s, not %s (%v)", job.Key, v.Output, want, err)
	}
}

// fails waits for the job's end and compares its error.
func (s *stage) fails(job quipu.Job, state journal.JobState, code int, message string) {
	v := s.end(job)
	if v.State != state || v.Code != code || v.Error == nil || v.Error.Message != message {
		s.fail(&job, "job %s ended %s with %d and %+v, not %s with %d and %q", job.Key, v.State, v.Code, v.Error, state, code, message)
	}
}

// find is the job that has the key, if there is one.
func (s *stage) find(key string) (job quipu.Job, found bool) {
	s.until("a look for "+key, nil, func() (bool, error) {
		var err error
		job, err = s.c.rt.Find(s.ctx, key)
		found = err == nil
		if errors.Is(err, quipu.ErrNotFound) {
			err = nil
		}
		return true, err
	})
	return job, found
}

// waiting waits until the job waits for a signal.
func (s *stage) waiting(job quipu.Job) {
	s.until("the wait of "+job.Key, &job, func() (bool, error) {
		v, err := s.c.rt.Job(s.ctx, job)
		return err == nil && len(v.Waits) > 0, err
	})
}

func itoa(n int) string { return strconv.Itoa(n) }

func init() { moreHandlers = append(moreHandlers, sceneHandlers) }

// deed is what the handler of the scenes is told to do.
type deed struct {
	Give  json.RawMessage `json:"give"`  // the output; null: the input
	Fail  string          `json:"fail"`  // fail for good with this message
	Flaky int             `json:"flaky"` // fail so many tries
	MS    int             `json:"ms"`    // take so long
	Tick  string          `json:"tick"`  // apply this outside
}

func sceneHandlers(reg *workers.Registry, receiver string) {
	workers.HandleRaw(reg, "act", func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
		var d deed
		if len(in) > 0 && in[0] == '{' {
			if err := json.Unmarshal(in, &d); err != nil {
				return nil, workers.Fatal(err)
			}
		}
		if !pause(ctx, time.Duration(d.MS)*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
		if d.Tick != "" {
			_, err := effects.Do(ctx, "tick", func(ctx context.Context) (map[string]string, error) {
				return call(ctx, receiver, effects.Key(ctx), "tick "+d.Tick)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
		}
		switch {
		case d.Fail != "":
			return nil, workers.Fatal(errors.New(d.Fail))
		case workers.Info(ctx).Try <= d.Flaky:
			return nil, errors.New("not yet")
		case d.Give != nil:
			return d.Give, nil
		}
		return in, nil
	})
}
