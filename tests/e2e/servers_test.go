package e2e

import (
	"strings"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// deleteStreams takes the space's streams away, consumers and messages with
// them (F10).
func (e *env) deleteStreams() {
	e.t.Helper()
	nc, err := natsgo.Connect(e.admin())
	require.NoError(e.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(e.t, err)
	e.eventually("streams to delete", func() bool {
		n := 0
		names := js.StreamNames(e.t.Context())
		for name := range names.Name() {
			if !strings.HasPrefix(name, "QUIPU_") {
				continue
			}
			// One that is gone already is being made again just now.
			if err := js.DeleteStream(e.t.Context(), name); err != nil {
				require.ErrorIs(e.t, err, jetstream.ErrStreamNotFound)
				continue
			}
			n++
		}
		require.NoError(e.t, names.Err())
		return n > 0
	})
}
