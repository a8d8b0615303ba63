package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// E8: a failed attempt with code 200 is refused, because the last attempt's failure would
// then end the activity as a success.
func TestE8NoFailedAttemptIsASuccess(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.ResponseKind{journal.ResponseFailedAttempt, journal.ResponseParked} {
		_, err := (&wire.Response{Kind: kind, Code: 200}).Journal()
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}
