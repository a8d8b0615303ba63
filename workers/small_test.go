package workers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport/memory"
)

// C10: a bus with small messages does not keep an error from being answered. Parts that
// do not fit are left out: the stack first, the data last.
func TestC10ErrorsFitTheSmallestMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 6<<10)
	for name, c := range map[string]struct {
		fail func() error
		data bool
	}{
		"a long message":         {func() error { return errors.New(long) }, false},
		"a panic":                {func() error { panic(long) }, false},
		"data, and little else":  {func() error { return Fail(422, "no", Data(strings.Repeat("d", 4<<10))) }, true},
		"data and a long text":   {func() error { return Fail(422, long, Data(strings.Repeat("d", 4<<10))) }, true},
		"data that does not fit": {func() error { return Fail(422, "no", Data(strings.Repeat("d", 20<<10))) }, false},
		"escaped":                {func() error { return errors.New(strings.Repeat("\x01", 8<<10)) }, false},
		"nothing to cut":         {func() error { return errors.New("no") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.bus = memory.New(memory.Config{AckWait: 300 * time.Millisecond, MaxPayload: 8 << 10})
			h.cfg.Bus = h.bus
			HandleRaw(h.reg, "fails", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, c.fail() })
			h.open()
			r := h.one(ask("fails", 1, `{}`))
			require.NotNil(t, r.Error)
			require.NotEmpty(t, r.Error.Message)
			require.Equal(t, c.data, r.Error.Data != nil)
			require.Equal(t, name == "data that does not fit", strings.Contains(r.Error.Message, "its data is left out"))
		})
	}
}

// Stacks, data and messages that fit stay complete.
func TestErrorsThatFitAreWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	HandleRaw(h.reg, "panics", func(context.Context, json.RawMessage) (json.RawMessage, error) { panic(strings.Repeat("m", 10<<10)) })
	h.open()
	r := h.one(ask("panics", 1, `{}`))
	require.Greater(t, len(r.Error.Message), 10<<10)
	require.Contains(t, r.Error.Stack, "small_test.go")
}
