//go:build chaos

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/wire"
	"github.com/quipu-journal/quipu/workers"
)

// chaosFlows are what runs beside orderFlow and bankFlow: mix carries a payload
// that no message holds (T4), wires forks and has each way to call outside, a
// function books and takes back what is not paid for. They try often, because a fault must not use up what a job is allowed.
var chaosFlows = []string{`
flow: mix
version: "1"
output: {n: "${ weigh.output.n }"}
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: charge, input: {id: "${ start.output.id }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
  bulk:   {type: worker, topic: bulk, input: {id: "${ start.output.id }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
  weigh:  {type: worker, topic: weigh, input: {id: "${ start.output.id }", blob: "${ bulk.output.blob }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
transitions:
  start: [charge]
  charge: [bulk]
  bulk: [weigh]
`, `
flow: wires
version: "1"
activities:
  start:   {type: trigger}
  reserve: {type: worker, topic: reserve, input: {id: "${ start.output.id }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
  guarded: {type: worker, topic: guarded, input: {id: "${ start.output.id }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
  notdone: {type: worker, topic: notdone, input: {id: "${ start.output.id }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
  wire:    {type: worker, topic: http, input: {method: POST, url: "${ start.output.url }", body: {a: 1}}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
transitions:
  start: [reserve]
  reserve: [guarded, notdone]
  guarded: [wire]
`, replaced(oneStep("trip"), "attempts: 5", "attempts: 40")}

// parks says that an activity's effect is Guarded: a fault may park it for a
// person (E4), and no other dead letter is right.
func parks(activity string) bool { return activity == "guarded" || activity == "notdone" }

// applied is what a flow's job must have applied outside, each once, and what
// it may have asked for at most once: a person can have answered instead.
func applied(flow, key string, paid bool) (once, atMost []string) {
	if flow == "one" {
		return trip(key, !paid), nil
	}
	topics := map[string][]string{
		"order": {"charge", "reserve", "ship"},
		"mix":   {"charge", "bulk", "weigh"},
		"wires": {"reserve", "wire"},
	}
	for _, topic := range topics[flow] {
		once = append(once, topic+" "+key)
	}
	if flow == "wires" {
		atMost = []string{"touch " + key, "notdone " + key}
	}
	return once, atMost
}

// request is the start of a job, with what its flow's activities read.
func (c *chaos) request(flow, key string) quipu.StartRequest {
	return quipu.StartRequest{Flow: flow, Key: key, Input: map[string]any{"id": key, "url": c.r.URL + "/?what=wire+" + key}}
}

// mood makes the receiver's answers take from nothing to twice delay. A fourth
// of the wires hear that it is unavailable although it applied the call.
func (c *chaos) mood(dice *rand.Rand) func(string) (wait time.Duration, status int) {
	var mu sync.Mutex
	return func(what string) (time.Duration, int) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(what, "wire ") && dice.IntN(4) == 0 {
			return between(dice, 0, chaosDelay), http.StatusServiceUnavailable
		}
		return between(dice, 0, 2*chaosDelay), http.StatusOK
	}
}

// blob is a text longer than a message carries, its own for each job, so that
// one mistaken for another shows.
func blob(id string) string { return strings.Repeat(id+"/", (wire.MaxInline+wire.MaxInline/8)/len(id)) }

func init() { moreHandlers = append(moreHandlers, chaosHandlers, tripHandlers) }

// chaosHandlers register the topics of chaosFlows.
func chaosHandlers(reg *workers.Registry, receiver string) {
	workers.Handle(reg, "bulk", func(ctx context.Context, in order) (map[string]string, error) {
		if workers.Info(ctx).Attempt == 1 && strings.HasSuffix(in.ID, "3") {
			panic("just once")
		}
		return effects.Do(ctx, "bulk", func(ctx context.Context) (map[string]string, error) {
			out, err := call(ctx, receiver, effects.Key(ctx), "bulk "+in.ID)
			if err != nil {
				return nil, err
			}
			out["blob"] = blob(in.ID)
			return out, nil
		}, effects.Idempotent)
	})
	type load struct{ ID, Blob string }
	workers.Handle(reg, "weigh", func(ctx context.Context, in load) (map[string]int, error) {
		if in.Blob != blob(in.ID) {
			return nil, workers.Fail(422, fmt.Sprintf("a blob of %d bytes is not the one of %s", len(in.Blob), in.ID))
		}
		_, err := effects.Do(ctx, "weigh", func(ctx context.Context) (map[string]string, error) {
			return call(ctx, receiver, effects.Key(ctx), "weigh "+in.ID)
		}, effects.Idempotent)
		return map[string]int{"n": len(in.Blob)}, err
	})
	var refused sync.Map
	workers.Handle(reg, "notdone", func(ctx context.Context, in order) (map[string]string, error) {
		return effects.Do(ctx, "notdone", func(ctx context.Context) (map[string]string, error) {
			if _, again := refused.LoadOrStore(in.ID, true); !again && !strings.HasSuffix(in.ID, "5") {
				return nil, effects.NotDone(errors.New("not yet")) // E5: the next key
			}
			return call(ctx, receiver, effects.Key(ctx), "notdone "+in.ID)
		}, effects.Guarded, effects.WithKey("k"+in.ID))
	})
}

// tripHandlers register a function that books three things, each with its undo,
// and then waits: it fails when it is told to.
func tripHandlers(reg *workers.Registry, receiver string) {
	workers.HandleDurable(reg, "trip", func(ctx context.Context, in order) (map[string]string, error) {
		for _, what := range []string{"flight", "hotel", "car"} {
			err := workers.Compensate(ctx, what, func(ctx context.Context) error {
				_, err := call(ctx, receiver, effects.Key(ctx), "cancel "+what+" "+in.ID)
				return err
			})
			if err != nil {
				return nil, err
			}
			_, err = effects.Do(ctx, what, func(ctx context.Context) (map[string]string, error) {
				return call(ctx, receiver, effects.Key(ctx), "book "+what+" "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
		}
		ok, err := workers.Await[bool](ctx, "paid", 0)
		if err == nil && !ok {
			err = workers.Fail(402, "not paid")
		}
		return map[string]string{"receipt": in.ID}, err
	})
}

// trip is what the function books for an id, and what it cancels when undone.
func trip(id string, undone bool) (calls []string) {
	for _, what := range []string{"flight", "hotel", "car"} {
		calls = append(calls, "book "+what+" "+id)
		if undone {
			calls = append(calls, "cancel "+what+" "+id)
		}
	}
	return calls
}

// orderFlow is charge → reserve → ship, each a call outside.
func orderFlow(name string) string {
	return strings.ReplaceAll(`
flow: NAME
version: "1"
output: {receipt: "${ charge.output.receipt }"}
activities:
  start:   {type: trigger}
  charge:  {type: worker, topic: charge, input: {id: "${ start.output.id }"}, retry: {attempts: 10, backoff: 100ms, max: 1s}}
  reserve: {type: worker, topic: reserve, input: {id: "${ start.output.id }"}, retry: {attempts: 10, backoff: 100ms, max: 1s}}
  ship:    {type: worker, topic: ship, input: {id: "${ start.output.id }", r: "${ charge.output.receipt }"}, retry: {attempts: 10, backoff: 100ms, max: 1s}}
transitions:
  start: [charge]
  charge: [reserve]
  reserve: [ship]
`, "NAME", name)
}
