package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	workers.Handle(reg, "charge", fn)
	workers.Handle(reg, "refund", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
	return reg
}

// single runs one job of chargeFlow to its end.
func single(e *env, extra string, fn func(context.Context, charge) (map[string]any, error)) (*quipu.Runtime, quipu.Job, string, error) {
	rt, _ := e.run(oneHandler(fn))
	e.deploy(rt, fmt.Sprintf(chargeFlow, extra))
	job := e.start(rt, "order", "order-1", map[string]any{"total": 12.5})
	out, err := e.wait(rt, job)
	return rt, job, string(out), err
}

func TestHappyPath(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job, out, err := single(e, "", func(_ context.Context, in charge) (map[string]any, error) {
			return map[string]any{"receipt": fmt.Sprintf("r-%v", in.Amount)}, nil
		})
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"r-12.5"}`, out)
		require.Equal(t, "201100000000001", e.ledger(rt, job, "charge"), "1.12")
		require.Equal(t, "101100000000001", e.ledger(rt, job, "start"), "1.12")
		e.clean(rt)
	})
}

func TestE11BusinessErrorWithMatchingTransition(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job, _, err := single(e, "", func(context.Context, charge) (map[string]any, error) {
			return nil, workers.Fail(402, "card refused")
		})
		require.NoError(t, err, "refund took the error")
		require.Equal(t, "201100000000001", e.ledger(rt, job, "refund"))
		e.clean(rt)
	})
}

// P12: a successor without a condition does not run after an error.
func TestP12BusinessErrorWithoutTransitionFailsTheJob(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job, _, err := single(e, "", func(context.Context, charge) (map[string]any, error) {
			return nil, workers.Fail(409, "stolen card")
		})
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 409, failed.Code)
		require.Contains(t, failed.Error(), "stolen card")
		require.Empty(t, e.ledger(rt, job, "refund"), "refund never ran")
		e.clean(rt)
	})
}

func TestE8RetriesToSuccess(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			if try := workers.Info(ctx).Try; try < 3 {
				return nil, fmt.Errorf("unreachable in try %d", try)
			}
			return map[string]any{"receipt": "r"}, nil
		})
		require.NoError(t, err)
		require.Equal(t, "201100000000003", e.ledger(rt, job, "charge"), "two failed tries are entries, not passes (C6)")
		e.clean(rt)
	})
}

func TestE8RetriesToExhaustion(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var runs atomic.Int64
		rt, _, _, err := single(e, "", func(context.Context, charge) (map[string]any, error) {
			runs.Add(1)
			return nil, errors.New("unreachable")
		})
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 500, failed.Code)
		require.GreaterOrEqual(t, runs.Load(), int64(3), "at least once executed (C9)")
		e.clean(rt)
	})
}

func TestE9PanicIsAFailedTry(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			if workers.Info(ctx).Try == 1 {
				panic("nil map")
			}
			return map[string]any{"receipt": "r"}, nil
		})
		require.NoError(t, err)
		var classes, stacks []string
		for _, entry := range e.entries(rt, job) {
			if r := entry.Response; r != nil && r.Error != nil {
				classes, stacks = append(classes, r.Error.Class), append(stacks, r.Error.Stack)
			}
		}
		require.Equal(t, []string{"panic"}, classes)
		require.Contains(t, stacks[0], "jobs_test.go", "the stack is in the journal")
		e.clean(rt)
	})
}

func TestE9TimeoutPerTry(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var cancelled atomic.Int64
		rt, job, _, err := single(e, ", timeout: 150ms", func(ctx context.Context, _ charge) (map[string]any, error) {
			<-ctx.Done()
			cancelled.Add(1)
			return nil, ctx.Err()
		})
		require.NoError(t, err, "408 goes to refund after the tries are exhausted")
		require.GreaterOrEqual(t, cancelled.Load(), int64(3))
		require.Equal(t, "201100000000003", e.ledger(rt, job, "charge"))
		e.clean(rt)
	})
}

// E9: `within` bounds an activity that no worker ever takes.
func TestE9WithinWithoutAWorker(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, _ := e.run(nil)
		e.deploy(rt, strings.Replace(fmt.Sprintf(chargeFlow, ", within: 300ms"),
			`when: "charge.code == 402 || charge.code == 408"`, `when: "charge.code == 402"`, 1))
		job := e.start(rt, "order", "order-1", map[string]any{"total": 1})
		_, err := e.wait(rt, job)
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 408, failed.Code)
		e.clean(rt)
	})
}

func TestE6OversizedResult(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, _, _, err := single(e, "", func(context.Context, charge) (map[string]any, error) {
			return map[string]any{"receipt": strings.Repeat("x", wire.MaxResult)}, nil
		})
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Error(), fmt.Sprint(wire.MaxResult), "the error names the limit")
		e.clean(rt)
	})
}

// E6: a result too large for a message is sent by its digest and is there for
// the expressions that follow.
func TestE6LargeResultByDigest(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		big := strings.Repeat("x", wire.MaxInline+1000)
		rt, _, out, err := single(e, "", func(context.Context, charge) (map[string]any, error) {
			return map[string]any{"receipt": big}, nil
		})
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"`+big+`"}`, out)
		e.clean(rt)
	})
}

// P11: a version activated under running jobs leaves them on theirs.
func TestP11RunningJobsKeepTheirVersion(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
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

func TestTwoDeploysOfOneVersion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt := e.open(e.config(nil))
	e.deploy(rt, fmt.Sprintf(chargeFlow, ""))
	e.deploy(rt, fmt.Sprintf(chargeFlow, "")) // the same content again is fine
	other, err := flow.Parse("test.yaml", []byte(fmt.Sprintf(chargeFlow, ", timeout: 1s")))
	require.NoError(t, err)
	require.ErrorIs(t, rt.Deploy(t.Context(), other), store.ErrVersionTaken)
	flows, err := rt.Store().Flows(t.Context())
	require.NoError(t, err)
	require.Len(t, flows, 1)
}

// A flow with ten faults: all are reported at once with their places, and
// nothing of it is stored (5.1).
func TestFlowWithTenFaults(t *testing.T) {
	t.Parallel()
	_, err := flow.Parse("bad.yaml", []byte(`
flow: Bad Name
version: "1"
colour: red
activities:
  start:  {type: trigger}
  start2: {type: trigger}
  a: {type: worker}
  b: {type: worker, topic: "no spaces", timeout: soon}
  c: {type: wurker, topic: c}
  d: {type: worker, topic: d, input: "${ nobody.output }", retry: {attempts: -1}}
  e: {type: worker, topic: e}
transitions:
  start: [a, {to: b, when: "1 +"}, nowhere]
  a: [d]
`))
	var faults flow.Faults
	require.ErrorAs(t, err, &faults)
	require.GreaterOrEqual(t, len(faults), 10, "%v", err)
	for _, f := range faults {
		require.Equal(t, "bad.yaml", f.File)
		require.Positive(t, f.Line, "%s", f.Message)
		require.Positive(t, f.Column, "%s", f.Message)
	}
}

func TestStartRefusesAndRepeats(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt := e.open(e.config(nil))
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
	already := (*quipu.ErrAlreadyStarted)(nil)
	require.ErrorAs(t, err, &already)
	require.True(t, already.SameFlow && already.SameInput, "1 and 1.0 are the same number")
	require.Equal(t, first, again)
	_, err = rt.Start(ctx, "order", "k", map[string]any{"total": 2})
	require.ErrorAs(t, err, &already)
	require.False(t, already.SameInput)
}

// P19: the hash chain is over the bytes as they were stored, whatever spelling
// of JSON a client chose.
func TestP19OddSpellingsVerify(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, _ := e.run(oneHandler(func(_ context.Context, in charge) (map[string]any, error) {
			return map[string]any{"receipt": "<&> ü 😀 \u2028", "z": 1e2, "a": []any{nil, 0.10}}, nil
		}))
		e.deploy(rt, fmt.Sprintf(chargeFlow, ""))
		raw := []byte(`{ "z\u00e9": 1e2, "total" : 100.00, "big": 9007199254740993, "n": {"b":-0, "a":[ ] } }`)
		job := e.start(rt, "order", "odd", jsonRaw(raw))
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		created := e.entries(rt, job)[0]
		require.Equal(t, journal.KindCreated, created.Kind)
		require.Equal(t, `{"big":9007199254740993,"n":{"a":[],"b":0},"total":100,"zé":100}`, string(created.Input))
		e.clean(rt)
	})
}

// P21, P31's plain case: a handler that outlives ack wait and lease by far runs
// once as long as its process lives.
func TestP21LongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var runs atomic.Int64
		rt, _, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			runs.Add(1)
			select {
			case <-time.After(3 * quickLease): // the work itself
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			return map[string]any{"receipt": "r"}, nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(1), runs.Load())
		e.clean(rt)
	})
}
