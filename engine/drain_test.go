package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal/store"
	busmem "github.com/quipu-journal/quipu/transport/memory"
)

// T10: an engine drains in bounded time while the database cannot be reached, even if all its
// messages came so often that each is carried alone.
func TestT10DrainInAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var runs atomic.Int64
		var away atomic.Bool
		r := start(t, engine.Config{}, busmem.Config{Seed: 5}, func(op string) error {
			if away.Load() && op == "load" {
				return errors.Join(store.ErrUnavailable, errors.New("no route to host"))
			}
			return nil
		}, echo(&runs))
		r.begin(200, 3)
		away.Store(true)
		time.Sleep(10 * time.Minute) // the bubble's clock
		began := time.Now()
		r.close()
		require.Less(t, time.Since(began), time.Minute)
	})
}
