package quiputest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// order packs its lines in parallel, after a charge that fails at first, and asks a child flow to
// ship them. A refusal on the way is also an output.
const order = `
flow: order
version: "1"
output: {packed: "${ pack.output }", parcel: "${ ship.output.parcel }", gift: "${ gift.error.message }"}
activities:
  start: {type: trigger}
  charge: {type: worker, topic: order.charge, retry: {attempts: 3, backoff: 1h}}
  pack: {type: worker, topic: order.pack, each: "${ start.output.lines }", input: "${ item }", parallel: 2}
  gift: {type: worker, topic: order.gift}
  thank: {type: worker, topic: echo}
  ship: {type: await, flow: shipping, id: "${ job.id + '-ship' }", input: {lines: "${ pack.output }"}}
  done: {type: hook, join: all}
transitions:
  start: [charge]
  charge: [pack, gift]
  pack: [ship]
  gift: [{to: thank, on: error}]
  ship: [done]
  thank: [done]
`

const shipping = `
flow: shipping
version: "1"
output: {parcel: "${ label.output }"}
activities:
  start: {type: trigger}
  weigh: {type: hook, sleep: 24h}
  label: {type: worker, topic: order.label, input: "${ start.output.lines }"}
transitions:
  start: [weigh]
  weigh: [label]
`

// shop has the handlers of the two flows.
func shop(w outside) func(*workers.Registry) {
	bank, store := w.Receiver("bank"), w.Receiver("store")
	return func(reg *workers.Registry) {
		workers.RegisterBuiltins(reg)
		workers.Handle(reg, "order.charge", func(ctx context.Context, _ any) (string, error) {
			quote, err := effects.Do(ctx, "quote", func(context.Context) (int, error) { return 7, nil }, effects.Pure)
			if err != nil {
				return "", err
			}
			if workers.Info(ctx).Attempt == 1 {
				return "", errors.New("the bank is closed")
			}
			return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
				bank.Apply(ctx, effects.Key(ctx))
				return fmt.Sprintf("receipt of %d", quote), nil
			}, effects.Idempotent)
		}, workers.Early())
		workers.Handle(reg, "order.pack", func(ctx context.Context, line string) (string, error) {
			store.Apply(ctx, workers.Info(ctx).Request) // a key of its own
			return "packed " + line, nil
		})
		workers.Handle(reg, "order.gift", func(ctx context.Context, _ any) (any, error) {
			return effects.Do(ctx, "gift", func(context.Context) (any, error) {
				return nil, workers.Fail(404, "no gifts left")
			}, effects.Idempotent)
		}, workers.Early())
		workers.Handle(reg, "order.label", func(ctx context.Context, lines []string) (string, error) {
			return effects.Do(ctx, "label", func(ctx context.Context) (string, error) {
				store.Apply(ctx, effects.Key(ctx))
				return fmt.Sprint("parcel of ", len(lines)), nil
			}, effects.Idempotent, effects.Args(lines))
		}, workers.Early())
	}
}

// Failed attempts, elements, children and refusals have the same end wherever a process dies
// (C9), of handlers that may be early and of one that may not.
func TestC9CrashOfAWholeOrder(t *testing.T) {
	t.Parallel()
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(order, shipping)
		w.Serve(shop(w))
		var out struct {
			Packed       []string
			Parcel, Gift string
		}
		job := w.Start("order", "o-1", map[string]any{"lines": []string{"a", "b", "c"}})
		job.Output(&out)
		require.Equal(t, []string{"packed a", "packed b", "packed c"}, out.Packed)
		require.Equal(t, "parcel of 3", out.Parcel)
		require.Equal(t, "no gifts left", out.Gift)
		require.Len(t, job.Children(), 1)
		require.Equal(t, "o-1-ship", job.Children()[0].Key)
		require.Equal(t, "o-1-ship", w.Job("o-1-ship").Key)
		require.Len(t, w.Jobs(), 2)
	})
}

// ledger is a table with transactions.
type ledger struct{ rows, pending []string }

// E3: the writes of a Tx effect are rolled back with a process that dies before the commit, and
// are written once.
func TestE3CrashOfTx(t *testing.T) {
	t.Parallel()
	var table *ledger
	begin := func(context.Context) (*ledger, func(bool)) {
		tx := &ledger{}
		return tx, func(commit bool) {
			if commit {
				table.rows = append(table.rows, tx.pending...)
			}
		}
	}
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		table = &ledger{}
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "transfer", func(ctx context.Context, in string) (int, error) {
				_, err := effects.DoTx(ctx, "refused", func(_ context.Context, tx any) (int, error) {
					tx.(*ledger).pending = []string{"refused"}
					return 0, workers.Fail(409, "refused")
				})
				var refused *effects.RecordedError
				if !errors.As(err, &refused) {
					return 0, err
				}
				return effects.DoTx(ctx, "transfer", func(_ context.Context, tx any) (int, error) {
					tx.(*ledger).pending = []string{in}
					return 1, nil
				})
			})
		})
		w.Call("transfer", "t-1", "10").Output(nil)
		require.Equal(t, []string{"10"}, table.rows)
	}, quiputest.WithTx(begin))
}

// A request of a process that dies during another request is done again, too.
func TestCrashTakesTheWholeProcess(t *testing.T) {
	t.Parallel()
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "slow", func(ctx context.Context, d time.Duration) (string, error) {
				return effects.Do(ctx, "wait", func(ctx context.Context) (string, error) {
					time.Sleep(d)
					w.Receiver("clock").Apply(ctx, effects.Key(ctx))
					return d.String(), nil
				}, effects.Idempotent)
			})
		})
		long, short := w.Call("slow", "long", 5*time.Minute), w.Call("slow", "short", time.Minute)
		short.Output(nil)
		long.Output(nil)
	})
}

// scribbled is a transaction that notes the statements of a body.
type scribbled struct {
	quipu.EffectTx // what the body does not use
	said           []string
}

func (s *scribbled) Exec(_ context.Context, sql string, _ ...any) (pgconn.CommandTag, error) {
	s.said = append(s.said, sql)
	return pgconn.CommandTag{}, nil
}

// insert registers a handler whose body is one Tx effect.
func insert(reg *workers.Registry) {
	quipu.HandleTx(reg, "insert", func(ctx context.Context, tx quipu.EffectTx, in string) (int, error) {
		_, err := tx.Exec(ctx, in)
		return 1, err
	})
}

// The bodies of quipu.DoTx and quipu.HandleTx run on a handle of the test's own. For another
// handle, or a world without one, the error says what to call.
func TestWithTxGivesBodiesAHandle(t *testing.T) {
	t.Parallel()
	var committed []string
	ours := quiputest.WithTx(func(context.Context) (quipu.EffectTx, func(bool)) {
		tx := &scribbled{}
		return tx, func(commit bool) {
			if commit {
				committed = append(committed, tx.said...)
			}
		}
	})
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.Serve(insert)
		w.Call("insert", "i-1", "insert into t").Output(nil)
	}, ours)
	require.Equal(t, []string{"insert into t"}, committed)
	other := quiputest.WithTx(func(context.Context) (int, func(bool)) { return 7, func(bool) {} })
	for says, options := range map[string][]quiputest.Option{
		"give it a quipu.EffectTx of your own with quiputest.WithTx": nil,
		"with quiputest.WithTx, it has a int":                        {other},
	} {
		quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
			w.Serve(insert)
			require.Contains(t, w.Call("insert", "i-1", "insert into t").Fails(500).Message, says)
		}, options...)
	}
}
