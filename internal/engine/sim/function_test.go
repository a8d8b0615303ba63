package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// topicDurable is the topic of the durable function.
const topicDurable = "durable"

// stride is one thing that a durable function does.
type stride struct {
	Do  string `json:"do"`
	Dur int    `json:"ms"`
}

// strides are the possible steps of a durable function.
var strides = []string{"effect", "guarded", "sleep", "await", "bounded", "child", "now", "undo", "all", "first"}

// function is a durable function that does what its input says (3.5).
func (p *process) function(ctx context.Context, in order) (map[string]int, error) {
	call := workers.Info(ctx)
	if v := p.world.gate.pass(ctx, p, kindBody, "function "+call.Request+fmt.Sprint(" ", call.Turn)); v.err != nil {
		return nil, v.err
	}
	for i, s := range in.Strides {
		if err := p.stride(ctx, fmt.Sprint("s", i), s); err != nil && !recorded(err) {
			return nil, err
		}
	}
	if call.Attempt <= in.Fail {
		if in.How == "fatal" {
			return nil, workers.Fatal(workers.Fail(422, "as told"))
		}
		return nil, errors.New("as told")
	}
	return map[string]int{"n": in.N}, nil
}

// recorded says that an error is a recorded result, with which the function goes on.
func recorded(err error) bool {
	var child *workers.ChildError
	var signal *workers.SignalError
	var refused *effects.RecordedError
	return errors.Is(err, workers.ErrAwaitTimeout) || errors.As(err, &child) || errors.As(err, &signal) ||
		errors.As(err, &refused)
}

func (p *process) stride(ctx context.Context, name string, s stride) error {
	d := time.Duration(s.Dur) * time.Millisecond
	outside := func(class effects.Class) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			_, err := effects.Do(ctx, name, func(ctx context.Context) (json.RawMessage, error) {
				return p.outside(ctx, &effect{Name: name, Class: class})
			}, class)
			return name, err
		}
	}
	sleep := func(ctx context.Context) (string, error) { return name, workers.Sleep(ctx, name+"-sleep", d) }
	await := func(timeout time.Duration) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			_, err := workers.Await[json.RawMessage](ctx, "tell", timeout, workers.As(name+"-await"))
			return name, err
		}
	}
	var err error
	switch s.Do {
	case "effect":
		_, err = outside(effects.Idempotent)(ctx)
	case "guarded":
		_, err = outside(effects.Guarded)(ctx)
	case "transfer":
		err = p.effect(ctx, &effect{Name: name, Class: effects.Tx})
	case "sleep":
		_, err = sleep(ctx)
	case "await":
		_, err = await(0)(ctx)
	case "bounded":
		_, err = await(d)(ctx)
	case "child":
		_, err = workers.Child[json.RawMessage](ctx, name, p.world.plan.kid, map[string]any{"list": []int{1}, "v": 1})
	case "now":
		_, err = workers.Now(ctx)
	case "undo":
		err = workers.Compensate(ctx, name, func(ctx context.Context) error {
			_, err := p.outside(ctx, &effect{Name: name + "-undo", Class: effects.Idempotent})
			return err
		})
	case "all":
		_, err = workers.All(ctx, outside(effects.Idempotent), sleep, await(d+time.Second))
	case "first":
		_, _, err = workers.First(ctx, sleep, await(0))
	}
	return err
}

// strides returns the possible steps of the flow's functions. Without compensations if jobs
// expire, since a removed job's cannot run.
func (g *gen) strides() []string {
	if !g.bank && !g.expire {
		return strides
	}
	all := slices.Clone(strides)
	if g.bank {
		all = append(all, "transfer")
	}
	if g.expire {
		all = slices.DeleteFunc(all, func(do string) bool { return do == "undo" })
	}
	return all
}

// function adds a worker with a durable function.
func (g *gen) function(name string) {
	fail, how := 0, "error"
	if g.chance(35) {
		fail, how = 1+g.dice.IntN(4), g.pick("error", "fatal")
	}
	var list []string
	for range 1 + g.dice.IntN(5) {
		do := g.pick(g.strides()...)
		if do == "child" && g.kid == "" {
			do = "sleep" // children do not start children of their flow
		}
		list = append(list, fmt.Sprintf("{do: %s, ms: %s}", do, g.pick("1", "200", "1500", "6000")))
	}
	extra := ""
	if g.chance(15) {
		extra = ", within: " + g.pick("1s", "6s")
	}
	g.attach(name, fmt.Sprintf("type: worker, topic: %s, input: {n: 1, fail: %d, how: %s, strides: [%s]}, retry: {attempts: %d, backoff: %s}%s",
		topicDurable, fail, how, strings.Join(list, ", "), 1+g.dice.IntN(4), g.pick("10ms", "400ms", "2s"), extra), true, true)
}
