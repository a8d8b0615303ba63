package quiputest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// The number of random functions, and the first seed; QUIPU_FUNCTIONS and QUIPU_FUNCTIONS_SEED
// override them.
var defaultFunctions = uint64(soak.Times(6, 12)) //nolint:gosec // a few

// E12–E15: random functions have the same end wherever their process dies.
func TestE15CrashOfRandomFunctions(t *testing.T) {
	t.Parallel()
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, name)
		return n
	}
	from := number("QUIPU_FUNCTIONS_SEED", rand.Uint64N(1_000_000))
	for seed := from; seed < from+number("QUIPU_FUNCTIONS", defaultFunctions); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &generator{dice: rand.New(rand.NewPCG(seed, 0))}
			ops := g.ops(0)
			t.Logf("QUIPU_FUNCTIONS_SEED=%d %+v", seed, ops)
			quiputest.CrashEverywhere(t, g.scenario(ops), quiputest.Boundaries(25), quiputest.Seed(seed))
		})
	}
}

// op is a call of a random function.
type op struct {
	kind     string // see call; "all" and "first" are those of branches
	name     string
	n        int
	branches [][]op
}

// generator draws functions.
type generator struct {
	dice  *rand.Rand
	names int
}

// ops draws the calls of the function, or of one of its branches.
func (g *generator) ops(depth int) []op {
	kinds := []string{
		"do", "do", "do", "pure", "sleep", "await", "child", "compensate", "compensate", "now", "version",
	}
	if depth < 2 {
		kinds = append(kinds, "all", "all", "first")
	}
	if depth == 0 { // a branch that won has won, also in the next attempt
		kinds = append(kinds, "flaky", "fail")
	}
	out := make([]op, 1+g.dice.IntN(4))
	for i := range out {
		out[i] = g.op(kinds[g.dice.IntN(len(kinds))])
		for b := range g.dice.IntN(3) + 1 {
			switch out[i].kind {
			case "all":
				out[i].branches = append(out[i].branches, g.ops(depth+1))
			case "first": // no two end together
				late := g.op("sleep")
				late.n = 10 + 100*b + g.dice.IntN(5)
				out[i].branches = append(out[i].branches, append([]op{late}, g.ops(depth+1)...))
			}
		}
	}
	return out
}

func (g *generator) op(kind string) op {
	g.names++
	return op{kind: kind, name: fmt.Sprint("x", g.names), n: g.dice.IntN(100)}
}

const echoing = `
flow: echoing
version: "1"
output: "${ say.output }"
activities:
  start: {type: trigger}
  say: {type: worker, topic: echo, input: "${ start.output }"}
transitions: {start: [say]}
`

// scenario runs the function and sends some of the signals that it waits for.
func (g *generator) scenario(ops []op) quiputest.Scenario {
	return func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(echoing)
		receiver := w.Receiver("outside")
		w.Serve(workers.RegisterBuiltins, func(reg *workers.Registry) {
			workers.HandleDurable(reg, "random", func(ctx context.Context, _ any) (string, error) { return perform(ctx, receiver, ops) })
		})
		job := w.Call("random", "r-1", nil)
		for i := 2; i <= g.names; i += 2 { // for those that wait; it is kept
			w.Signal("random", fmt.Sprint("x", i), i)
		}
		job.End()
	}
}

// perform makes the calls and returns an account of their results.
func perform(ctx context.Context, receiver *quiputest.Receiver, ops []op) (string, error) {
	var account strings.Builder
	for i := range ops {
		said, err := ops[i].call(ctx, receiver)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&account, "%s %s: %s; ", ops[i].kind, ops[i].name, said)
	}
	return account.String(), nil
}

// call makes one call.
func (o *op) call(ctx context.Context, receiver *quiputest.Receiver) (said string, err error) {
	apply := func(ctx context.Context) error {
		receiver.Apply(ctx, effects.Key(ctx))
		return nil
	}
	branches := make([]func(context.Context) (string, error), len(o.branches))
	for i, branch := range o.branches {
		branches[i] = func(ctx context.Context) (string, error) { return perform(ctx, receiver, branch) }
	}
	switch o.kind {
	case "do":
		return effects.Do(ctx, o.name, func(ctx context.Context) (string, error) { return o.name, apply(ctx) }, effects.Idempotent)
	case "pure":
		return effects.Do(ctx, o.name, func(context.Context) (string, error) { return o.name, nil }, effects.Pure)
	case "sleep":
		return "", workers.Sleep(ctx, o.name, time.Duration(o.n)*time.Minute)
	case "await":
		_, err = workers.Await[int](ctx, "random", time.Duration(o.n+1)*time.Hour, workers.As(o.name), workers.SignalKey(o.name))
		if errors.Is(err, workers.ErrAwaitTimeout) && o.n%3 > 0 {
			return "nobody", nil
		}
	case "child":
		return workers.Child[string](ctx, o.name, "echoing", o.name)
	case "compensate":
		return "", workers.Compensate(ctx, o.name, apply)
	case "now":
		_, err = workers.Now(ctx)
	case "version":
		version, err := workers.Version(ctx, o.name, 3)
		return fmt.Sprint(version), err
	case "flaky":
		if o.n < 30 && workers.Info(ctx).Attempt == 1 {
			err = errors.New("not now")
		}
	case "fail":
		if o.n < 40 {
			err = workers.Fail(409, o.name)
		}
	case "all":
		all, err := workers.All(ctx, branches...)
		return fmt.Sprint(all), err
	case "first":
		winner, said, err := workers.First(ctx, branches...)
		return fmt.Sprint(winner, " ", said), err
	}
	return said, err
}
