package quipu_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// The code of README.md is in this file, and its flow is read from there, so what a reader copies
// runs here.

type Charge struct {
	Order  string      `json:"order"`
	Amount json.Number `json:"amount"` // numbers are exact decimals, not floats
}

type Receipt struct {
	ID string `json:"id"`
}

// charge may run more than once after a crash. What it does outside has a name
// and a key that is the same on every run, so the bank applies it once.
func charge(ctx context.Context, in Charge) (Receipt, error) {
	if in.Amount == "0" {
		return Receipt{}, workers.Fail(402, "nothing to charge") // a business error: the flow can branch on it
	}
	return effects.Do(ctx, "charge", func(ctx context.Context) (Receipt, error) {
		return bank.Charge(ctx, effects.Key(ctx), in)
	}, effects.Idempotent)
}

func open(ctx context.Context, postgres, nats string) (*quipu.Runtime, error) {
	reg := workers.New()
	workers.Handle(reg, "payments.charge", charge)
	workers.RegisterBuiltins(reg) // http, echo, sleep, fail
	return quipu.Open(ctx, quipu.Config{Postgres: postgres, NATS: nats, Space: "shop", Workers: reg})
}

func pay(ctx context.Context, rt *quipu.Runtime, source []byte) (json.RawMessage, error) {
	f, err := flow.Parse("payment.yaml", source)
	if err != nil {
		return nil, err // every fault of the file, with line and column
	}
	if err := rt.Deploy(ctx, f); err != nil {
		return nil, err
	}
	job, err := rt.Start(ctx, "payment", "order-42", map[string]any{"order": "order-42", "net": 0.1, "tax": 0.2})
	if err != nil {
		return nil, err
	}
	return rt.Wait(ctx, job) // the job that has this key, however often it is started
}

// bank stands for a payment provider that honours idempotency keys.
var bank ledger

type ledger struct {
	mu      sync.Mutex
	applied map[string]Charge
}

// Charge applies a charge once per key.
func (l *ledger) Charge(_ context.Context, key string, in Charge) (Receipt, error) {
	if key == "" {
		return Receipt{}, errors.New("a charge needs a key")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.applied == nil {
		l.applied = map[string]Charge{}
	}
	l.applied[key] = in
	return Receipt{ID: "receipt-of-" + in.Order}, nil
}

// readmeFlow is the first YAML block of README.md.
func readmeFlow(t *testing.T) []byte {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	require.True(t, found)
	source, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	return []byte(source)
}

// A reader who copies the README gets a job that ends with the promised output, and is charged
// once, however often it is started.
func TestReadme(t *testing.T) {
	t.Parallel()
	source := readmeFlow(t)
	rt, err := open(t.Context(), devtest.Postgres(t), devtest.NATS(t).URL())
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()

	bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		out, err := pay(bounded, rt, source)
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt": "receipt-of-order-42", "amount": 0.3}`, string(out))
	}
	require.Len(t, bank.applied, 1)
	for _, c := range bank.applied {
		require.Equal(t, Charge{Order: "order-42", Amount: "0.3"}, c)
	}

	job, err := rt.Start(bounded, "payment", "order-43", map[string]any{"order": "order-43", "net": 0, "tax": 0})
	require.NoError(t, err)
	out, err := rt.Wait(bounded, job)
	require.NoError(t, err)
	require.JSONEq(t, `{"receipt": null, "amount": 0}`, string(out), "the error was taken by the flow")
	require.Len(t, bank.applied, 1)

	stop()
	require.NoError(t, devtest.Await(t, "the end of the drain", done))
}
