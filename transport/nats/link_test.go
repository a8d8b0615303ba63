package nats

import (
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// T5: a loop that waits for the connection goes on after an outage, even if the event was
// lost.
func TestT5WaitSurvivesALostEvent(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	nc, err := natsgo.Connect(server.URL(), natsgo.MaxReconnects(-1), natsgo.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	defer nc.Close()
	l := newLink(nc)
	down := make(chan struct{}, 1)
	nc.SetDisconnectErrHandler(func(*natsgo.Conn, error) { down <- struct{}{} })
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart(t.Context()) }()
	devtest.Await(t, "the end of the connection", down)
	up := make(chan error, 1)
	go func() { up <- l.wait(t.Context()) }()
	require.NoError(t, devtest.Await(t, "the restart of the server", restarted))
	require.Eventually(t, func() bool { // without an event
		l.wake()
		select {
		case err := <-up:
			return err == nil
		default:
			return false
		}
	}, 20*time.Second, 5*time.Millisecond)
}
