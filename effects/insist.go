package effects

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/backoff"
	"github.com/quipu-journal/quipu/journal/store"
)

// Limits of the store's calls around an effect. A finish is worth waiting for:
// what was done outside is known here and nowhere else.
const (
	startAttempts  = 3
	finishAttempts = 8
	firstWait      = 50 * time.Millisecond
	longestWait    = 2 * time.Second
	storeTimeout   = 10 * time.Second // per call
)

// insist repeats op while the database is away or the outcome of its commit is
// unknown: every write of the port may be repeated.
func insist(ctx context.Context, tries int, op func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, storeTimeout)
		err := op(bounded)
		cancel()
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)
		if !again || attempt >= tries {
			return err
		}
		// Without chance: a simulated world plays the same way again.
		timer := time.NewTimer(backoff.Delay(attempt-1, firstWait, longestWait, nil))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
