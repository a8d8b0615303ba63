package workers

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	reg := New()
	Handle(reg, "fine", func(context.Context, travelling) (travelling, error) { return travelling{inner: nil}, nil })
	require.NoError(t, reg.Check())
	Handle[int, int](reg, "none", nil)
	HandleRaw(reg, "raw", nil)
	HandleDurable(reg, "durable", func(context.Context, int) (complex128, error) { return 0, nil })
	Handle(reg, "out", func(context.Context, int) (broken, error) { return broken{}, nil })
	Handle(reg, "in", func(context.Context, chan int) (func(), error) { return nil, nil })
	HandleDurable(reg, "durable.in", func(context.Context, func()) (int, error) { return 0, nil })
	err := reg.Check()
	for _, said := range []string{
		`topic "none": its function is nil`, `topic "raw": its function is nil`,
		`topic "durable": its output complex128 cannot be JSON: complex128`,
		`topic "out": its output workers.broken cannot be JSON: chan int`,
		`topic "in": its input chan int cannot be JSON: chan int`, `its output func() cannot be JSON: func()`,
		`topic "durable.in": its input func() cannot be JSON: func()`,
	} {
		require.ErrorContains(t, err, said)
	}
	require.Equal(t, []string{"fine"}, reg.Topics())
}
