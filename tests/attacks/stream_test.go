package attacks

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// cluster starts three servers with one JetStream, and returns their URLs.
func cluster(t *testing.T) (urls string) {
	t.Helper()
	routes := make([]*url.URL, 3)
	for i := range routes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		routes[i] = &url.URL{Scheme: "nats", Host: l.Addr().String()}
		require.NoError(t, l.Close())
	}
	for i, route := range routes {
		opts := &natsserver.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: natsserver.RANDOM_PORT,
			JetStream: true, StoreDir: t.TempDir(), Routes: routes,
		}
		opts.Cluster.Name, opts.Cluster.Host, opts.Cluster.Port = "three", "127.0.0.1", portOf(t, route.Host)
		urls += "," + devtest.NATSOf(t, opts).ClientURL()
	}
	return urls[1:]
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	require.NoError(t, err)
	return a.Port
}

// A process that nobody told about the replicas, a worker on a laptop perhaps, joins a
// space whose operators have made its streams safe. The streams stay as they are.
func TestWeakenedStream(t *testing.T) {
	t.Parallel()
	urls := cluster(t)
	nc, err := natsgo.Connect(urls)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	made := map[string]jetstream.StreamConfig{}
	for name, subject := range map[string]string{"LANES": "lane.*", "START": "start", "WORK": "work.>"} {
		cfg := jetstream.StreamConfig{
			Name: "QUIPU_shop_" + name, Subjects: []string{"quipu.shop." + subject}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, Replicas: 3, MaxBytes: 2 << 30, MaxAge: 72 * time.Hour,
			Duplicates:  5 * time.Minute,
			Compression: jetstream.S2Compression, Placement: &jetstream.Placement{Cluster: "three"}, Description: "of the operators",
		}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			s, err := js.CreateOrUpdateStream(t.Context(), cfg)
			require.NoError(c, err, "the servers have no leader yet")
			made[cfg.Name] = s.CachedInfo().Config
		}, patience, 100*time.Millisecond)
	}

	g := newTarget(t)
	said := &devtest.Log{}
	g.open(nil, func(c *quipu.Config) {
		c.NATS, c.NATSWait, c.Space, c.Roles, c.Logger = urls, patience, "meek", []quipu.Role{quipu.RoleEngine}, logTo(said)
	})
	require.Contains(t, said.String(), "one replica (R1) in the cluster three", "streams that are to be made weaker than the servers could have them")
	g.Run(g.open(nil, func(c *quipu.Config) { c.NATS, c.Roles = urls, []quipu.Role{quipu.RoleEngine} }))
	for name, want := range made {
		require.Eventually(t, func() bool { // the process has been there
			_, err := js.Consumer(t.Context(), name, map[string]string{"QUIPU_shop_LANES": "lane-0", "QUIPU_shop_START": "start"}[name])
			return err == nil || name == "QUIPU_shop_WORK"
		}, patience, 10*time.Millisecond)
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, want, s.CachedInfo().Config, name)
	}
}
