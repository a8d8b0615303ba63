package nats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// W5: the end of a job is in no stream, and a listener survives a restart of the server.
func TestW5Listens(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	ear, mouth := open(t, cfg), open(t, cfg)
	require.NoError(t, mouth.Ensure(t.Context()))
	job := [16]byte{15: 7}
	told := make(chan struct{}, 1)
	stop, err := ear.Listen(job, func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	require.NoError(t, err)
	defer stop()
	hears := func() bool {
		mouth.Tell(job)
		select {
		case <-told:
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	}
	require.Eventually(t, hears, 30*time.Second, time.Millisecond)
	require.NoError(t, server.Restart(t.Context()))
	select {
	case <-told: // told by an earlier message
	default:
	}
	require.Eventually(t, hears, 30*time.Second, time.Millisecond)

	_, js := client(t, server)
	_, err = js.StreamNameBySubject(t.Context(), "quipu."+cfg.Space+".ended."+strings.Repeat("0", 31)+"7")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
