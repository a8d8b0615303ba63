package faults

import (
	"context"
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/workers"
)

// makeBank makes the accounts, whose total no transfer changes (I13), and a table
// without any constraint that would hide a transfer made twice.
const makeBank = `
CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE IF NOT EXISTS transfers (id text NOT NULL);
INSERT INTO accounts SELECT n, 1000 FROM generate_series(0, 3) n ON CONFLICT DO NOTHING;
`

// bankTotal is what all accounts have together.
const bankTotal = 4000

// handlers registers the handlers of Flow. With guarded the effect of ship is Guarded.
func handlers(outside string, guarded bool) *workers.Registry {
	reg := workers.New()
	for _, topic := range []string{"charge", "ship", "rest"} {
		class := effects.Idempotent
		if guarded && topic == "ship" {
			class = effects.Guarded
		}
		workers.Handle(reg, topic, func(ctx context.Context, in order) (map[string]string, error) {
			return effects.Do(ctx, topic, func(ctx context.Context) (map[string]string, error) {
				return world.Call(ctx, outside, effects.Key(ctx), topic+" "+in.ID)
			}, class)
		}, workers.Early())
	}
	workers.Handle(reg, "weigh", func(_ context.Context, in order) (int, error) { return len(in.ID), nil }, workers.Early())
	workers.Handle(reg, "move", func(ctx context.Context, in order) (map[string]bool, error) {
		moved, err := quipu.DoTx(ctx, "move", func(ctx context.Context, tx quipu.EffectTx) (bool, error) {
			return transfer(ctx, tx, in)
		})
		return map[string]bool{"moved": moved}, err
	}, workers.Early())
	workers.HandleDurable(reg, "trip", trip(outside), workers.Early())
	return reg
}

// trip sleeps, calls outside, and waits for the traveller.
func trip(outside string) func(context.Context, order) (map[string]json.RawMessage, error) {
	return func(ctx context.Context, in order) (map[string]json.RawMessage, error) {
		if err := workers.Sleep(ctx, "nap", 20*time.Millisecond); err != nil {
			return nil, err
		}
		_, err := effects.Do(ctx, "trip", func(ctx context.Context) (map[string]string, error) {
			return world.Call(ctx, outside, effects.Key(ctx), "trip "+in.ID)
		}, effects.Idempotent)
		if err != nil {
			return nil, err
		}
		got, err := workers.Await[json.RawMessage](ctx, "traveller", time.Hour)
		return map[string]json.RawMessage{"got": got}, err
	}
}

// transfer moves the amount, if the account has it, and notes that it was asked
// to.
func transfer(ctx context.Context, tx quipu.EffectTx, in order) (bool, error) {
	if _, err := tx.Exec(ctx, "INSERT INTO transfers VALUES ($1)", in.ID); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - $2 WHERE id = $1 AND balance >= $2", in.From, in.Amount)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, "UPDATE accounts SET balance = balance + $2 WHERE id = $1", in.To, in.Amount)
	return err == nil, err
}
