package work

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

type travelling struct {
	Next   *travelling
	Hidden func()   `json:"-"`
	inner  chan int // not written
	Any    any
	At     time.Time
	N      *big.Int
	Raw    json.RawMessage
}

type broken struct {
	Rows []map[string]*struct{ Done chan int }
}

// A mistake in the code is reported when the process starts, not by the first job.
func TestRegistryIsChecked(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.Handle(reg, "fine", func(context.Context, travelling) (travelling, error) { return travelling{inner: nil}, nil })
	require.NoError(t, reg.Check())
	v := finds(effects.StateUnknown, "", nil)
	workers.Verify(reg, "", v, effects.Warn)
	workers.Verify(reg, "nil", nil, effects.Warn)
	workers.Verify(reg, "mode", v, "odd")
	workers.Verify(reg, "again", v, effects.Warn)
	workers.Verify(reg, "again", v, effects.Strict)
	workers.HandleRaw(reg, "a..b", echo)
	workers.HandleRaw(reg, "twice", echo)
	workers.HandleRaw(reg, "twice", echo)
	workers.HandleRaw(reg, "tx", echo, workers.Class(effects.Tx))
	workers.HandleRaw(reg, "many", echo, workers.Concurrency(0), workers.Class("odd"))
	workers.HandleDurable(reg, "fn", func(context.Context, int) (int, error) {
		return 0, nil
	}, workers.Class(effects.Guarded))
	workers.Handle[int, int](reg, "none", nil)
	workers.HandleRaw(reg, "raw", nil)
	workers.HandleDurable(reg, "durable", func(context.Context, int) (complex128, error) { return 0, nil })
	workers.Handle(reg, "out", func(context.Context, int) (broken, error) { return broken{}, nil })
	workers.Handle(reg, "in", func(context.Context, chan int) (func(), error) { return nil, nil })
	workers.HandleDurable(reg, "durable.in", func(context.Context, func()) (int, error) { return 0, nil })
	err := reg.Check()
	for _, said := range []string{
		`topic "none": its function is nil`, `topic "raw": its function is nil`,
		`topic "durable": its output complex128 cannot be JSON: complex128`,
		`topic "out": its output work.broken cannot be JSON: chan int`,
		`topic "in": its input chan int cannot be JSON: chan int`, `its output func() cannot be JSON: func()`,
		"empty token", "registered twice", "class tx", "concurrency 0", `class "odd"`, "a durable function names its effects itself",
		"1 to 200", `"nil": it is nil`, `"odd"`, `"again": it is registered twice`,
		`topic "durable.in": its input func() cannot be JSON: func()`,
	} {
		require.ErrorContains(t, err, said)
	}
	require.Subset(t, []string{"fine", "twice"}, reg.Topics())

	h := newHouse(t)
	h.cfg.Registry = reg
	_, again := NewRuntime(h.cfg)
	require.ErrorContains(t, again, "empty token")
	_, err = NewRuntime(Config{})
	for _, field := range []string{"Registry", "Bus", "Store", "DeadLetter", "Space"} {
		require.ErrorContains(t, err, field+" is required")
	}
	_, err = NewRuntime(Config{Lanes: -1, Concurrency: 1 << 20})
	require.ErrorContains(t, err, "Lanes is -1")
	require.ErrorContains(t, err, "Concurrency is 1048576")
	require.NoError(t, h.bus.Close())
}
