package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
)

// A signal that could never be delivered is refused before anything is sent; the error names the
// fault and the limit.
func TestSignalsAreChecked(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	long := strings.Repeat("x", 513)
	for name, c := range map[string]struct {
		topic, key string
		payload    any
		opts       []quipu.SignalOption
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
		"large payload":       {"a.b", "k", strings.Repeat("x", quipu.MaxPayload), nil, "the limit is 262144"},
		"code":                {"a.b", "k", 1, []quipu.SignalOption{quipu.Code(201)}, "200, 202, or 400 to 599"},
		"keep":                {"a.b", "k", 1, []quipu.SignalOption{quipu.Keep(0)}, "more than 0"},
		"kept too long":       {"a.b", "k", 1, []quipu.SignalOption{quipu.Keep(quipu.MaxKeep + 1)}, "at most 720h"},
		"no idempotency key":  {"a.b", "k", 1, []quipu.SignalOption{quipu.IdempotencyKey("")}, "1 to 512 bytes"},
		"bad idempotency key": {"a.b", "k", 1, []quipu.SignalOption{quipu.IdempotencyKey("\x00")}, "U+0000"},
	} {
		_, err := s.Signal(t.Context(), c.topic, c.key, c.payload, c.opts...)
		require.ErrorIs(t, err, quipu.ErrInput, name)
		require.ErrorContains(t, err, c.says, name)
		_, err = s.SignalAll(t.Context(), c.topic, c.key, c.payload, c.opts...)
		require.ErrorIs(t, err, quipu.ErrInput, name)
	}
	for says, opt := range map[string]quipu.InterruptOption{
		"400 to 599":      quipu.Code(200),
		"at most 4096":    quipu.Reason(strings.Repeat("x", flow.MaxReason+1)),
		"1 to 512 bytes":  quipu.IdempotencyKey(""),
		"U+0000 of at":    quipu.Reason("\x00"),
		"1 to 512 bytes ": quipu.IdempotencyKey(strings.Repeat("x", quipu.MaxIdempotencyKey+1)),
	} {
		_, err := s.Interrupt(t.Context(), quipu.Job{Key: "k"}, opt)
		require.ErrorIs(t, err, quipu.ErrInput)
		require.ErrorContains(t, err, says)
	}
}

// C8: an idempotency key identifies a signal, whatever else is set. Without a key each call is its
// own signal.
func TestC8SignalIdentity(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	duplicate := func(opts ...quipu.SignalOption) bool {
		done, err := s.Signal(t.Context(), "a.b", "k", map[string]int{"n": 1}, opts...)
		require.NoError(t, err)
		return done.Duplicate
	}
	require.False(t, duplicate(quipu.IdempotencyKey("x")))
	require.True(t, duplicate(quipu.IdempotencyKey("x"), quipu.Code(202), quipu.Keep(time.Hour)))
	require.False(t, duplicate(quipu.IdempotencyKey("y")))
	require.False(t, duplicate())
	require.False(t, duplicate())
}
