package quipu

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// A signal that could never be delivered is refused before anything is sent; the error names the
// fault and the limit.
func TestSignalsAreChecked(t *testing.T) {
	t.Parallel()
	rt := &Runtime{cfg: Config{Space: "shop", Observer: observer.Nop{}}}
	long := strings.Repeat("x", 513)
	for name, c := range map[string]struct {
		topic, key string
		payload    any
		opts       []SignalOption
		says       string
	}{
		"no topic":            {"", "k", 1, nil, "topic"},
		"topic of no flow":    {"Order.Reviewed", "k", 1, nil, "as in a flow"},
		"long topic":          {long, "k", 1, nil, "the limit is 128"},
		"no key":              {"a.b", "", 1, nil, "no key"},
		"long key":            {"a.b", long, 1, nil, "the limit is 512"},
		"key with NUL":        {"a.b", "a\x00", 1, nil, "U+0000"},
		"key of no text":      {"a.b", "a\xff", 1, nil, "UTF-8"},
		"no JSON":             {"a.b", "k", make(chan int), nil, "payload"},
		"large payload":       {"a.b", "k", strings.Repeat("x", MaxPayload), nil, "the limit is 262144"},
		"code":                {"a.b", "k", 1, []SignalOption{Code(201)}, "200, 202, or 400 to 599"},
		"keep":                {"a.b", "k", 1, []SignalOption{Keep(0)}, "more than 0"},
		"kept too long":       {"a.b", "k", 1, []SignalOption{Keep(MaxKeep + 1)}, "at most 720h"},
		"no idempotency key":  {"a.b", "k", 1, []SignalOption{IdempotencyKey("")}, "1 to 512 bytes"},
		"bad idempotency key": {"a.b", "k", 1, []SignalOption{IdempotencyKey("\x00")}, "U+0000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rt.Signal(t.Context(), c.topic, c.key, c.payload, c.opts...)
			require.ErrorIs(t, err, ErrSignal)
			require.ErrorContains(t, err, c.says)
			_, err = rt.SignalAll(t.Context(), c.topic, c.key, c.payload, c.opts...)
			require.ErrorIs(t, err, ErrSignal)
		})
	}
}

func TestInterruptsAreChecked(t *testing.T) {
	t.Parallel()
	rt := &Runtime{}
	for says, opt := range map[string]InterruptOption{
		"400 to 599":      Code(200),
		"at most 4096":    Reason(strings.Repeat("x", flow.MaxReason+1)),
		"1 to 512 bytes":  IdempotencyKey(""),
		"U+0000 of at":    Reason("\x00"),
		"1 to 512 bytes ": IdempotencyKey(strings.Repeat("x", MaxIdempotencyKey+1)),
	} {
		_, err := rt.Interrupt(t.Context(), Job{Key: "k"}, opt)
		require.ErrorIs(t, err, ErrInterrupt)
		require.ErrorContains(t, err, says)
	}
}

// C8: the GUID of a signal follows from the idempotency key. Without a key each call is its own
// signal.
func TestC8SignalIdentity(t *testing.T) {
	t.Parallel()
	rt := &Runtime{cfg: Config{Space: "shop", Observer: observer.Nop{}}}
	make := func(opts ...SignalOption) [16]byte {
		s, err := rt.signal(context.Background(), false, "a.b", "k", map[string]int{"n": 1}, opts)
		require.NoError(t, err)
		require.Equal(t, `{"n":1}`, string(s.Payload))
		return s.GUID
	}
	require.Equal(t, make(IdempotencyKey("x")), make(IdempotencyKey("x"), Code(202), Keep(time.Hour)))
	require.NotEqual(t, make(IdempotencyKey("x")), make(IdempotencyKey("y")))
	require.NotEqual(t, make(), make())
}
