package nats

import (
	"context"
	"errors"
	"testing"
	"time"

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

// S2: who floods a process with messages that are not authentic gets one line of its log in ten seconds, which
// counts all of them.
func TestS2StrangersFillNoLog(t *testing.T) {
	t.Parallel()
	var s strangers
	start := time.Unix(1_700_000_000, 0)
	lines, told := 0, 0
	const flood, during = 10_000, time.Minute
	for i := range flood {
		if n := s.count(start.Add(during * time.Duration(i) / flood)); n > 0 {
			lines, told = lines+1, told+n
		}
	}
	require.Equal(t, int(during/strangersEvery), lines)
	require.Equal(t, flood, told+s.n)
}
