package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
	"github.com/quipu-journal/quipu/workers"
)

type charge struct {
	Amount float64 `json:"amount"`
}

const chargeFlow = `
flow: order
version: "1"
input: {type: object, required: [total], properties: {total: {type: number}}}
output: {receipt: "${ charge.code == 200 ? charge.output.receipt : null }"}
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: charge, input: {amount: "${ start.output.total }"}, retry: {attempts: 3, backoff: 50ms}%s}
  refund: {type: worker, topic: refund, input: {code: "${ charge.code }", why: "${ charge.error.message }"}}
transitions:
  start: [charge]
  charge: [{to: refund, on: error, when: "charge.code == 402 || charge.code == 408"}]
`

// oneHandler registers a handler for charge, and one for refund that echoes.
func oneHandler(fn func(context.Context, charge) (map[string]any, error)) *workers.Registry {
	reg := workers.New()
	if fn != nil {
		workers.Handle(reg, "charge", fn)
	}
	workers.Handle(reg, "refund", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
	return reg
}

// end is how a job of one activity ends: its handler, and what comes of it.
type end struct {
	extra   string // of the activity
	handler func(ctx context.Context, in charge) (map[string]any, error)
	gives   string // JSON; "" for a job that fails
	code    int    // of a job that fails
	says    string
	ledger  string
	refund  string // the ledger of the activity behind it
}

func receipt(text string) func(context.Context, charge) (map[string]any, error) {
	return func(context.Context, charge) (map[string]any, error) { return map[string]any{"receipt": text}, nil }
}

func failing(err error) func(context.Context, charge) (map[string]any, error) {
	return func(context.Context, charge) (map[string]any, error) { return nil, err }
}

var big = strings.Repeat("x", wire.MaxInline+1000)

// ends are by name.
var ends = map[string]end{
	"happy": {handler: receipt("r"), gives: `{"receipt":"r"}`, ledger: "201100000000001"},
	// E11: refund takes the error.
	"refunded": {handler: failing(workers.Fail(402, "card refused")), gives: `{"receipt":null}`, refund: "201100000000001"},
	// P12: a successor without a condition that fits does not run after an error.
	"refused": {handler: failing(workers.Fail(409, "stolen card")), code: 409, says: "stolen card"},
	// E8: two failed attempts are entries, not passes (C6).
	"retried": {handler: func(ctx context.Context, _ charge) (map[string]any, error) {
		if attempt := workers.Info(ctx).Attempt; attempt < 3 {
			return nil, fmt.Errorf("unreachable in attempt %d", attempt)
		}
		return map[string]any{"receipt": "r"}, nil
	}, gives: `{"receipt":"r"}`, ledger: "201100000000003"},
	"exhausted": {handler: failing(errors.New("unreachable")), code: 500, says: "unreachable", ledger: "201100000000003"},
	// E9.
	"panicking": {handler: func(ctx context.Context, _ charge) (map[string]any, error) {
		if workers.Info(ctx).Attempt == 1 {
			panic("nil map")
		}
		return map[string]any{"receipt": "r"}, nil
	}, gives: `{"receipt":"r"}`},
	"late": {extra: ", timeout: 150ms", handler: func(ctx context.Context, _ charge) (map[string]any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, gives: `{"receipt":null}`, ledger: "201100000000003", refund: "201100000000001"},
	"unserved": {extra: ", within: 300ms", gives: `{"receipt":null}`, refund: "201100000000001"},
	// E6: the error names the limit; what is too large for a message goes by its digest.
	"oversized": {handler: receipt(strings.Repeat("x", wire.MaxResult)), code: 500, says: fmt.Sprint(wire.MaxResult)},
	"large":     {handler: receipt(big), gives: `{"receipt":"` + big + `"}`},
}

// E6, E8, E9, E11, P12: how one activity ends.
func TestEndsOfAnActivity(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		reg := oneHandler(nil)
		for name, x := range ends {
			if x.handler != nil {
				workers.Handle(reg, name, x.handler)
			}
		}
		rt, _ := e.run(reg)
		jobs := map[string]quipu.Job{}
		for name, x := range ends {
			text := replaced(fmt.Sprintf(chargeFlow, x.extra), "topic: charge", "topic: "+name)
			e.deploy(rt, replaced(text, "flow: order", "flow: "+name))
			jobs[name] = e.start(rt, name, name, map[string]any{"total": 12.5})
		}
		for name, x := range ends {
			out, err := e.wait(rt, jobs[name])
			if x.code == 0 {
				require.NoError(t, err, name)
				require.JSONEq(t, x.gives, string(out), name)
			} else {
				failed, ok := errors.AsType[*quipu.JobError](err)
				require.True(t, ok, "%s: %v", name, err)
				require.Equal(t, x.code, failed.Code, name)
				require.Contains(t, failed.Error(), x.says, name)
			}
			if x.ledger != "" {
				require.Equal(t, x.ledger, e.ledger(rt, jobs[name], "charge"), name)
			}
			require.Equal(t, x.refund, e.ledger(rt, jobs[name], "refund"), name)
		}
		var stacks []string
		for _, entry := range e.entries(rt, jobs["panicking"]) {
			if r := entry.Response; r != nil && r.Error != nil && r.Error.Class == "panic" {
				stacks = append(stacks, r.Error.Stack)
			}
		}
		require.Len(t, stacks, 1)
		require.Contains(t, stacks[0], "jobs_test.go", "the stack is in the journal")
		e.clean(rt)
	})
}

// P11: a version activated under running jobs leaves them on theirs.
func TestP11RunningJobsKeepTheirVersion(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		gate := make(chan struct{})
		rt, _ := e.run(oneHandler(func(context.Context, charge) (map[string]any, error) {
			<-gate
			return map[string]any{"receipt": "r"}, nil
		}))
		e.deploy(rt, fmt.Sprintf(chargeFlow, ""))
		old := e.start(rt, "order", "old", map[string]any{"total": 1})
		two := strings.NewReplacer(`version: "1"`, `version: "2"`, `{receipt: "${ charge.code == 200 ? charge.output.receipt : null }"}`, `{v: 2}`).
			Replace(fmt.Sprintf(chargeFlow, ""))
		e.deploy(rt, two)
		require.NoError(t, rt.Activate(t.Context(), "order", "2"))
		fresh := e.start(rt, "order", "fresh", map[string]any{"total": 1})
		close(gate)
		out, err := e.wait(rt, old)
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"r"}`, string(out))
		out, err = e.wait(rt, fresh)
		require.NoError(t, err)
		require.JSONEq(t, `{"v":2}`, string(out))
		e.clean(rt)
	})
}

func TestStartRefusesAndRepeats(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt := e.client()
	e.deploy(rt, fmt.Sprintf(chargeFlow, ""))
	ctx := t.Context()
	_, err := rt.Start(ctx, "order", "k", map[string]any{"total": "much"})
	require.ErrorIs(t, err, quipu.ErrInput)
	_, err = rt.Start(ctx, "order", "", map[string]any{"total": 1})
	require.ErrorIs(t, err, quipu.ErrKey)
	_, err = rt.Start(ctx, "nothing", "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	first := e.start(rt, "order", "k", map[string]any{"total": 1})
	again, err := rt.Start(ctx, "order", "k", map[string]any{"total": 1.0})
	require.NoError(t, err)
	require.True(t, again.Existing, "1 and 1.0 are the same number")
	require.Equal(t, first.ID, again.ID)
	_, err = rt.Start(ctx, "order", "k", map[string]any{"total": 2})
	other := (*quipu.ConflictError)(nil)
	require.ErrorAs(t, err, &other)
	require.False(t, other.SameInput)
	require.True(t, other.SameFlow)
}

// P19: the hash chain is over the bytes as they were stored, whatever spelling
// of JSON a client chose.
func TestP19OddSpellingsVerify(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		rt, _ := e.run(oneHandler(func(_ context.Context, in charge) (map[string]any, error) {
			return map[string]any{"receipt": "<&> ü 😀 \u2028", "z": 1e2, "a": []any{nil, 0.10}}, nil
		}))
		e.deploy(rt, fmt.Sprintf(chargeFlow, ""))
		raw := []byte(`{ "z\u00e9": 1e2, "total" : 100.00, "big": 9007199254740993, "n": {"b":-0, "a":[ ] } }`)
		job := e.start(rt, "order", "odd", json.RawMessage(raw))
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		created := e.entries(rt, job)[0]
		require.Equal(t, journal.KindCreated, created.Kind)
		require.Equal(t, `{"big":9007199254740993,"n":{"a":[],"b":0},"total":100,"zé":100}`, string(created.Input))
		e.clean(rt)
	})
}

// P21, P31: a handler, a Guarded call, and a Guarded call of a function, each of which
// outlives ack wait and lease by far, run once as long as their process lives, and
// are not parked.
func TestP21P31LongCallsKeepTheirLease(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		var runs atomic.Int64
		long := func(ctx context.Context) (map[string]string, error) {
			runs.Add(1)
			select {
			case <-time.After(3 * quickLease): // the work itself
				return map[string]string{"receipt": "r"}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		reg := workers.New()
		workers.Handle(reg, "handler", func(ctx context.Context, _ any) (map[string]string, error) { return long(ctx) })
		workers.Handle(reg, "guarded", func(ctx context.Context, _ any) (map[string]string, error) { return effects.Do(ctx, "slow", long) })
		workers.HandleDurable(reg, "function", func(ctx context.Context, _ any) (map[string]string, error) {
			if err := workers.Sleep(ctx, "nap", time.Millisecond); err != nil {
				return nil, err
			}
			return effects.Do(ctx, "slow", long)
		})
		rt, _ := e.run(reg)
		var jobs []quipu.Job
		for _, topic := range []string{"handler", "guarded", "function"} {
			e.deploy(rt, replaced(oneStep(topic), "flow: one", "flow: "+topic))
			jobs = append(jobs, e.start(rt, topic, topic, order{ID: topic}))
		}
		for _, job := range jobs {
			_, err := e.wait(rt, job)
			require.NoError(t, err, job.Key)
		}
		require.Equal(t, int64(len(jobs)), runs.Load())
		letters, err := rt.Operator().DeadLetters(t.Context(), quipu.DeadLetterFilter{All: true, Limit: 10})
		require.NoError(t, err)
		require.Empty(t, letters)
		e.clean(rt)
	})
}
