package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	bus := open(t, cfg)
	report, err := bus.Preflight(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Streams, "they are not made yet")
	require.Equal(t, 1<<20, report.MaxPayload)
	require.NotEmpty(t, report.ServerVersion)
	require.Empty(t, report.Warnings, "a server alone has no place for a second replica")

	require.NoError(t, bus.Ensure(t.Context()))
	report, err = bus.Preflight(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Streams, 3)
	leaves := cfg
	leaves.LeaveStreams = true
	worker, err := open(t, leaves).Preflight(t.Context())
	require.NoError(t, err)
	require.Empty(t, worker.Streams, "a worker has no right to look at them (S4)")
	require.Equal(t, cfg.MaxBytes, report.Streams[0].MaxBytes)
}

// 4.4: Preflight refuses and names a setting that breaks the promise, and so does Ensure;
// TestS5EachSettingOfAStream has them all.
func TestPreflightRefuses(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streams(cfg)[0], Subjects: []string{"quipu." + cfg.Space + ".lane.*"}, Discard: jetstream.DiscardNew,
	})
	require.NoError(t, err)
	bus := open(t, cfg)
	report, err := bus.Preflight(t.Context())
	require.ErrorIs(t, err, nats.ErrPreflight)
	require.Len(t, report.Problems, 1)
	for _, err := range []error{err, bus.Ensure(t.Context())} {
		require.ErrorContains(t, err, streams(cfg)[0])
		require.ErrorContains(t, err, "retention is Limits, must be WorkQueue")
	}
}

func TestPreflightPayload_T4(t *testing.T) {
	t.Parallel()
	for limit, refused := range map[int32]bool{4 << 10: true, 64 << 10: false} {
		server, err := dev.StartNATS(t.Context(), t.TempDir(), dev.NATSOptions{MaxPayload: limit})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Shutdown()) })
		bus := open(t, config(server))
		report, err := bus.Preflight(t.Context())
		require.Equal(t, int(limit), report.MaxPayload)
		if refused {
			require.ErrorIs(t, err, nats.ErrPreflight)
			require.ErrorContains(t, err, "max_payload")
		} else {
			require.NoError(t, err)
			require.Contains(t, strings.Join(report.Warnings, "\n"), "max_payload")
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]nats.Config{
		"Space has 0":                       {},
		`Space "a.b"`:                       {Space: "a.b"},
		"Lanes is 2000":                     {Space: "a", Lanes: 2000},
		"Replicas is 9, allowed are 1 to 5": {Space: "a", Replicas: 9},
		"MaxBytes":                          {Space: "a", MaxBytes: 5},
		"MaxAge is 59m0s: at least 1h0m0s":  {Space: "a", MaxAge: 59 * time.Minute},
		"Pin is 1.001s: at most LaneAckWait, which is 1s": {Space: "a", Pin: 1001 * time.Millisecond, LaneAckWait: time.Second},
		"Pin is 4s: at most LaneAckWait, which is 3s":     {Space: "a", Pin: 4 * time.Second},
		"MaxInFlight":                        {Space: "a", MaxInFlight: 1 << 20},
		"Prefix is":                          {Space: "a", Prefix: "Quipu"},
		"Domain is":                          {Space: "a", Domain: "a.b"},
		"PlacementTags":                      {Space: "a", PlacementTags: []string{""}},
		"NKeySeed /nonexistent":              {Space: "a", NKeySeed: "/nonexistent"},
		"Credentials /nonexistent":           {Space: "a", Credentials: "/nonexistent"},
		"NKeySeed is set beside Credentials": {Space: "a", Credentials: "a", NKeySeed: "b"},
		"CA /nonexistent":                    {Space: "a", CA: "/nonexistent"},
		"Key is missing":                     {Space: "a", Cert: "/nonexistent"},
		"Cert /nonexistent":                  {Space: "a", Cert: "/nonexistent", Key: "/else"},
	} {
		_, err := nats.Open(t.Context(), cfg)
		require.ErrorContains(t, err, want)
		_, named := errors.AsType[*transport.ConfigError](err)
		require.True(t, named, want)
	}
	_, err := nats.Open(t.Context(), nats.Config{Space: "a", URL: "nats://user:hunter2@[::1"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2", "no secret in an error (4.5)")
}
