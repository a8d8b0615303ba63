package nats

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// offline is a bus without a server, for what needs none.
func offline(t *testing.T, change ...func(*Config)) *Bus {
	t.Helper()
	cfg := Config{Space: "shop"}
	for _, f := range change {
		f(&cfg)
	}
	cfg, err := cfg.normalise()
	require.NoError(t, err)
	return &Bus{cfg: cfg, nc: &natsgo.Conn{}}
}

// settings has, for each field of a configuration, what somebody may have set, and what becomes of
// it: kept, ours, or a part of the refusal.
func settings(t *testing.T, file string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	all := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), " ", 3)
		all[part[0]] = [2]string{part[1], part[2]}
	}
	return all
}

// S5: every setting of a stream is either kept or refused with both values. A setting that
// a new client library adds needs a line here.
func TestS5EachSettingOfAStream(t *testing.T) {
	t.Parallel()
	b, lines := offline(t), settings(t, "streams.txt")
	for f := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		line, known := lines[f.Name]
		require.True(t, known, "what is to become of a stream's %s?", f.Name)
		have := b.streamConfig(transport.Lane)
		require.NoError(t, json.Unmarshal([]byte(line[0]), &have))
		want, up := b.raised(have, transport.Lane)
		require.Equal(t, have, want, f.Name)
		require.Empty(t, up, f.Name)
		problems := strings.Join(b.streamProblems(&want, transport.Lane), "\n")
		if line[1] == "kept" {
			require.Empty(t, problems, f.Name)
		} else {
			require.Contains(t, problems, line[1], f.Name)
		}
	}
}

// S5: what a process was told to have is raised, and only where the stream has less.
func TestS5RaisesWhatIsConfigured(t *testing.T) {
	t.Parallel()
	b := offline(t, func(c *Config) {
		c.Replicas, c.MaxBytes, c.MaxAge = 3, 1<<30, 24*time.Hour
		c.PlacementCluster, c.PlacementTags = "east", []string{"ssd"}
	})
	plain := offline(t).streamConfig(transport.Start)
	less := plain
	less.Replicas, less.MaxBytes, less.MaxAge, less.Duplicates = 1, 1<<20, time.Minute, time.Second
	less.Subjects, less.Placement = []string{"theirs"}, &jetstream.Placement{Tags: []string{"eu"}}
	less.Description, less.Compression = "theirs", jetstream.S2Compression
	got, up := b.raised(less, transport.Start)
	want := less
	want.Replicas, want.MaxBytes, want.MaxAge, want.Duplicates = 3, 1<<30, 24*time.Hour, DuplicateWindow
	want.Subjects = []string{"theirs", "quipu.shop.start"}
	want.Placement = &jetstream.Placement{Cluster: "east", Tags: []string{"eu", "ssd"}}
	require.Equal(t, want, got)
	require.Len(t, up, 6)
	require.Contains(t, strings.Join(up, "\n"), "Replicas from 1 to 3")

	more := plain
	more.Replicas, more.MaxBytes, more.MaxAge, more.Duplicates = 5, -1, 0, time.Hour
	more.Placement = &jetstream.Placement{Cluster: "west", Tags: []string{"eu", "ssd"}}
	got, up = b.raised(more, transport.Start)
	require.Equal(t, more, got, "nothing is taken away, and no stream moves to another cluster")
	require.Empty(t, up)
	require.Contains(t, b.streamWarnings(&more)[0], "it is in the cluster west, and Placement asks for east")
}

// S5: every setting of a consumer is kept, or given the value that all processes rely on,
// or refused with both values.
func TestS5EachSettingOfAConsumer(t *testing.T) {
	t.Parallel()
	b, lines := offline(t), settings(t, "consumers.txt")
	want := b.consumerConfig(transport.ToLane(0))
	for f := range reflect.TypeFor[jetstream.ConsumerConfig]().Fields() {
		line, known := lines[f.Name]
		require.True(t, known, "what is to become of a consumer's %s?", f.Name)
		have := b.consumerConfig(transport.ToLane(0))
		require.NoError(t, json.Unmarshal([]byte(line[0]), &have))
		require.Equal(t, line[0] == "{}", reflect.DeepEqual(have, want), "%s is set", f.Name)
		got, changed := raisedConsumer(have, want)
		problems := strings.Join(b.consumerProblems(&got), "\n")
		switch line[1] {
		case "kept":
			require.Equal(t, have, got, f.Name)
			require.False(t, changed, f.Name)
			require.Empty(t, problems, f.Name)
		case "ours":
			require.Equal(t, want, got, f.Name)
			require.True(t, changed, f.Name)
			require.Empty(t, problems, f.Name)
		default:
			require.Contains(t, problems, line[1], f.Name)
		}
	}
	for _, larger := range []int{-1, 1 << 20} {
		have := want
		have.MaxAckPending = larger
		got, changed := raisedConsumer(have, want)
		require.Equal(t, larger, got.MaxAckPending, "a larger limit stays")
		require.False(t, changed)
	}
}
