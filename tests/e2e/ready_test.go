package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// T5: a process with an engine is not ready where NATS answers and has no streams for it. With
// JetStream it makes them.
func TestNoStreamsIsNotReady(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]bool{"with JetStream": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := devtest.NATSOf(t,
				&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: has, StoreDir: t.TempDir()})
			rt, err := quipu.Open(t.Context(), quipu.Config{
				Postgres: world.Database(t, ""), NATS: s.ClientURL(), NATSWait: -1, Roles: []quipu.Role{quipu.RoleEngine},
			})
			require.NoError(t, err)
			defer rt.Close()
			require.Eventually(t, func() bool {
				return rt.Check(t.Context()) == nil
			}, time.Minute, 10*time.Millisecond, "a client needs no streams")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- rt.Run(ctx) }()
			devtest.Await(t, "readiness", rt.Ready())
			err = rt.Check(t.Context())
			if has {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, quipu.ErrNotReady)
				require.ErrorContains(t, err, "the streams of the space cannot be had: ensure stream QUIPU_default_LANES: ")
			}
			stop()
			require.NoError(t, devtest.Await(t, "the end of Run", done))
		})
	}
}
