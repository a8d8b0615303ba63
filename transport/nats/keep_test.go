package nats_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport/nats"
)

// settings is the configuration of a stream, without what the server adds.
func settings(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	return s.CachedInfo().Config
}

// S5: what an operator has set of streams and consumers stays over every Ensure, and a
// process that asks for more raises that and nothing else.
func TestS5KeepsWhatAnOperatorSet(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	changed := map[string]jetstream.StreamConfig{}
	for _, name := range streams(cfg) {
		theirs := settings(t, js, name)
		require.Equal(t, cfg.MaxBytes, theirs.MaxBytes)
		theirs.MaxBytes, theirs.MaxAge, theirs.Duplicates = 64<<20, 48*time.Hour, time.Hour
		theirs.Description, theirs.Compression, theirs.DenyPurge = "theirs", jetstream.S2Compression, true
		theirs.Metadata = map[string]string{"team": "payments"}
		theirs.Placement = &jetstream.Placement{Tags: []string{}}
		stream, err := js.UpdateStream(t.Context(), theirs)
		require.NoError(t, err)
		changed[name] = stream.CachedInfo().Config
	}
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	for name, theirs := range changed {
		require.Equal(t, theirs, settings(t, js, name))
	}
	more := cfg
	more.MaxBytes, more.MaxAge = 128<<20, 24*time.Hour
	require.NoError(t, open(t, more).Ensure(t.Context()))
	for name, theirs := range changed {
		theirs.MaxBytes = more.MaxBytes
		require.Equal(t, theirs, settings(t, js, name), "the age was longer already")
	}

	lanes := streams(cfg)[0]
	consumer, err := js.Consumer(t.Context(), lanes, "lane-0")
	require.NoError(t, err)
	ours := consumer.CachedInfo().Config
	theirs := ours
	theirs.Description, theirs.SampleFrequency, theirs.MaxAckPending, theirs.AckWait = "theirs", "50%", 1<<20, time.Minute
	_, err = js.UpdateConsumer(t.Context(), lanes, theirs)
	require.NoError(t, err)
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	consumer, err = js.Consumer(t.Context(), lanes, "lane-0")
	require.NoError(t, err)
	theirs.AckWait = ours.AckWait
	require.Equal(t, theirs, consumer.CachedInfo().Config, "all but the ack wait, which every process relies on")
}

// S5: a consumer that gives nothing out is refused with both values.
func TestS5RefusesAConsumer(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	lanes := streams(cfg)[0]
	require.NoError(t, js.DeleteConsumer(t.Context(), lanes, "lane-0"))
	_, err := js.CreateConsumer(t.Context(), lanes, jetstream.ConsumerConfig{
		Durable: "lane-0", FilterSubject: "quipu." + cfg.Space + ".lane.0", AckPolicy: jetstream.AckExplicitPolicy, MaxWaiting: 7,
	})
	require.NoError(t, err)
	err = open(t, cfg).Ensure(t.Context())
	require.ErrorContains(t, err, "consumer lane-0")
	require.ErrorContains(t, err, "max waiting is 7, must be at least 4096")
}

// S5: settings that a server cannot give are named in the error.
func TestS5NamesWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	cfg.Replicas = 3
	err := open(t, cfg).Ensure(t.Context())
	require.ErrorContains(t, err, "Replicas 3")
	require.ErrorContains(t, err, "non-clustered")
	cfg.Replicas = 1
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	cfg.Replicas = 3
	err = open(t, cfg).Ensure(t.Context())
	require.ErrorContains(t, err, "raise Replicas from 1 to 3")
}

// S5: two prefixes are two spaces, also on one server.
func TestS5Prefix(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	cfg.Prefix, cfg.MaxAge = "acme", nats.MinMaxAge
	require.NoError(t, open(t, cfg).Ensure(t.Context()))
	is := settings(t, js, "ACME_"+cfg.Space+"_WORK")
	require.Equal(t, []string{"acme." + cfg.Space + ".work.>"}, is.Subjects)
	require.Equal(t, nats.MinMaxAge, is.MaxAge)
	_, err := js.Stream(t.Context(), streams(cfg)[2])
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
