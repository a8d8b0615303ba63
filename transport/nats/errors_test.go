package nats

import (
	"context"
	"errors"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// T5: errors that a retry may cure are told apart from permanent ones.
func TestT5ErrorsThatARetryMends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no answer in time":   {context.DeadlineExceeded, true},
		"no responders":       {natsgo.ErrNoResponders, true},
		"stream gone":         {jetstream.ErrStreamNotFound, true},
		"consumer gone":       {jetstream.ErrConsumerNotFound, true},
		"consumer taken away": {&jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeConsumerDoesNotExist}, true},
		"server overloaded":   {&jetstream.APIError{Code: 503, ErrorCode: errCodeInsufficientResources}, true},
		"configuration":       {jetstream.ErrStreamNameAlreadyInUse, false},
		"ended":               {context.Canceled, false},
		"closed":              {natsgo.ErrConnectionClosed, false},
	} {
		err := ioError("op", c.err)
		require.Equal(t, c.want, errors.Is(err, transport.ErrUnavailable), name)
		if !errors.Is(c.err, natsgo.ErrConnectionClosed) {
			require.ErrorIs(t, err, c.err, name)
		}
	}
}
