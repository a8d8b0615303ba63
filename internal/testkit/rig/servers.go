package rig

import (
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// NATS is a server of the test's own, with options that dev does not know.
func NATS(t testing.TB, opts *natsserver.Options) *natsserver.Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	s, err := natsserver.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s
}
