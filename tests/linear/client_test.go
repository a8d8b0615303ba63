package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// How long things may take.
const (
	waitSpan  = 300 * time.Millisecond // of a read that waits for an end
	patience  = 2 * time.Second        // of most calls; then the client is taken for dead
	impatient = 100 * time.Millisecond // of some calls
)

// errNothing says that a read learned nothing.
var errNothing = errors.New("nothing was learned")

// ask does the call.
func (w *stage) ask(ctx context.Context, rt *quipu.Runtime, c call) (answer, error) {
	switch c.verb {
	case doStart:
		job, err := rt.Start(ctx, kinds[c.what.flow].name, c.key, map[string]int{"v": c.what.value})
		if other := (*quipu.ConflictError)(nil); errors.As(err, &other) {
			return answer{
				gen: w.gen(c.key, job.ID), already: true, sameFlow: other.SameFlow, sameInput: other.SameInput,
			}, nil
		}
		return answer{
			gen: w.gen(c.key, job.ID), already: job.Existing, sameFlow: job.Existing, sameInput: job.Existing,
		}, err
	case doSignal, doSignalAll:
		return signalled(ctx, rt, c)
	case doInterrupt:
		opts := []quipu.InterruptOption{quipu.Reason(strconv.Itoa(int(c.id)))}
		if c.once != 0 {
			opts = append(opts, onceKey(c))
		}
		got, err := rt.Interrupt(ctx, quipu.Job{Key: c.key}, opts...)
		if errors.Is(err, quipu.ErrNotFound) {
			return answer{notFound: true}, nil
		}
		return answer{gen: w.gen(c.key, got.Job.ID), duplicate: got.Duplicate}, err
	}
	said, err := w.look(ctx, rt, c)
	switch {
	case errors.Is(err, quipu.ErrNotFound):
		return answer{notFound: true}, nil
	case err != nil:
		return answer{}, fmt.Errorf("%w: %w", errNothing, err)
	}
	return said, nil
}

func onceKey(c call) quipu.IdempotencyKey {
	return quipu.IdempotencyKey(fmt.Sprintf("once-%d", c.once))
}

func signalled(ctx context.Context, rt *quipu.Runtime, c call) (answer, error) {
	send, opts := rt.Signal, []quipu.SignalOption(nil)
	if c.verb == doSignalAll {
		send = rt.SignalAll
	}
	if c.once != 0 {
		opts = append(opts, onceKey(c))
	}
	if failing(c.id) {
		opts = append(opts, quipu.Code(422))
	}
	got, err := send(ctx, "go", c.key, map[string]rune{"n": c.id}, opts...)
	return answer{signal: store.SignalState(got.State), reached: got.Reached, duplicate: got.Duplicate}, err
}

// look does a read.
func (w *stage) look(ctx context.Context, rt *quipu.Runtime, c call) (answer, error) {
	id := collation.NewJobID(w.space, c.key, int64(c.gen))
	job := quipu.Job{ID: id, Key: c.key}
	switch c.verb {
	case doFind:
		found, err := rt.Find(ctx, c.key)
		return answer{gen: w.gen(c.key, found.ID)}, err
	case doJob:
		v, err := below.Of(rt).Job(ctx, job.ID)
		if err != nil {
			return answer{}, err
		}
		return answer{seen: seen(v)}, nil
	}
	out, err := rt.Wait(ctx, job)
	ended := (*quipu.JobError)(nil)
	switch {
	case errors.As(err, &ended):
		v := view{phase: phase(ended.State), done: true}
		v.by = endedBy(v.phase, ended.Cause)
		return answer{seen: v}, nil
	case err != nil:
		return answer{}, err
	}
	return answer{seen: view{phase: completed, done: true, taken: output(out)}}, nil
}

// gen is the generation of a job, -1 where its id is of no job of the key.
func (w *stage) gen(key string, id journal.JobID) int {
	for g := range 100 {
		if collation.NewJobID(w.space, key, int64(g)) == id {
			return g
		}
	}
	return -1
}

// finalized is the least ledger of an activity that has ended (1.2).
const finalized = 200_000_000_000_000

func seen(v *store.JobView) view {
	out := view{phase: phase(v.State), done: v.Ended, waits: len(v.Waits) > 0}
	for i := range v.Instances {
		if in := &v.Instances[i]; strings.HasPrefix(in.Key.Activity, "hook") && in.Ledger >= finalized {
			out.handled++
		}
	}
	out.by = endedBy(out.phase, v.Error)
	if out.phase == completed && out.done {
		out.taken = output(v.Output)
	}
	return out
}

// endedBy is the interrupt or the signal that an error is of; -1 for none.
func endedBy(p phase, f *journal.Failure) rune {
	id, err := -1, error(nil)
	switch {
	case p == interrupted && f != nil:
		id, err = strconv.Atoi(f.Message)
	case p == failed && f != nil:
		var payload struct{ N int }
		err = json.Unmarshal(f.Data, &payload)
		id = payload.N
	case p != interrupted && p != failed:
		id = 0
	}
	if err != nil {
		id = -1
	}
	return rune(id)
}

// output is the signals that a completed job says it took.
func output(raw []byte) string {
	var out struct{ Got []rune }
	if err := json.Unmarshal(raw, &out); err != nil {
		return "?"
	}
	return string(out.Got)
}

// choose is the next call of a client.
func (w *stage) choose(dice *rand.Rand) call {
	c := call{key: w.key(dice)}
	switch n := dice.IntN(100); {
	case n < 20:
		c.verb, c.what = doStart, start{flow: dice.IntN(len(kinds)), value: dice.IntN(2)}
	case n < 54:
		c.verb = doSignal
	case n < 58:
		c.verb = doSignalAll
	case n < 62:
		c.verb = doInterrupt
	case n < 68:
		c.verb = doFind
	case n < 90:
		c.verb = doJob
	default:
		c.verb = doWait
	}
	if !c.verb.reads() {
		c.id = w.id(c.verb != doInterrupt && dice.IntN(20) == 0)
	}
	if (c.verb == doSignal || c.verb == doInterrupt) && dice.IntN(2) == 0 {
		c.once = 1 + dice.Int32N(3)
	}
	if c.verb == doJob || c.verb == doWait {
		if c.gen = w.newest(c.key) - dice.IntN(6)/5; c.gen < 1 {
			c.verb, c.gen = doFind, 0
		}
	}
	return c
}
