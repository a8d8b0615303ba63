package effect

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
)

// Limits of the store's calls around an effect. A finish has more attempts: only this
// process knows what was done outside.
const (
	startAttempts  = 3
	finishAttempts = 8
	firstWait      = 50 * time.Millisecond
	longestWait    = 2 * time.Second
	storeTimeout   = 10 * time.Second // per call
)

// insist repeats op while the database is away or the outcome of a commit is unknown.
// Every write of the port may be repeated.
func insist(ctx context.Context, tries int, op func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, storeTimeout)
		err := op(bounded)
		cancel()
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)
		if !again || attempt >= tries {
			return err
		}
		// No randomness: a simulation must be reproducible.
		select {
		case <-time.After(backoff.Delay(attempt-1, firstWait, longestWait, nil)):
		case <-ctx.Done():
			return err
		}
	}
}
