//go:build chaos

package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
)

// jetPatience bounds one attempt at a stream: NATS may be away as well.
const jetPatience = 2 * time.Second

// fault is one kind of trouble and the pause before each.
type fault struct {
	name      string
	low, high time.Duration
	do        func(ctx context.Context, dice *rand.Rand)
}

// faults are all kinds of trouble (6.3).
func (c *chaos) faults() []fault {
	return []fault{
		{"F1 kill", 300 * time.Millisecond, 2500 * time.Millisecond, c.kill},
		{"F2 stop", 500 * time.Millisecond, 2 * time.Second, c.stop},
		{"T10 term", 2 * time.Second, 5 * time.Second, c.term},
		{"F4 postgres", 3 * time.Second, 7 * time.Second, c.restartPostgres},
		{"F9 nats", 2 * time.Second, 6 * time.Second, c.restartNATS},
		{"F10 streams", 300 * time.Millisecond, 1500 * time.Millisecond, c.breakStream},
	}
}

// chosen are the faults of a round. Every third round has all. The odd ones let
// NATS and the processes live, so that what is lost with a stream or a
// connection is found by those who lost it. The others have any, at least one.
func (c *chaos) chosen(dice *rand.Rand) []fault {
	all := c.faults()
	set := 1 + dice.IntN(1<<len(all)-1)
	switch {
	case c.round%3 == 0:
		return all
	case c.round%2 == 1:
		set = 0b101110 // all but kill and nats
	}
	var out []fault
	for i, f := range all {
		if set&(1<<i) != 0 {
			out = append(out, f)
		}
	}
	return out
}

// often does f after each pause until ctx ends.
func often(ctx context.Context, dice *rand.Rand, f fault) {
	for pause(ctx, between(dice, f.low, f.high)) {
		f.do(ctx, dice)
	}
}

// victim is one of the worker processes, nil while its slot has none yet.
func (c *chaos) victim(dice *rand.Rand) *kid {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kids[dice.IntN(len(c.kids))]
}

func (c *chaos) kill(_ context.Context, dice *rand.Rand) {
	if k := c.victim(dice); k != nil {
		k.ours.Store(true)
		_ = k.cmd.Process.Kill() // gone already is as good
		c.count("kill")
	}
}

// stop makes a process stand still past its lease, or nearly so: another takes
// its requests over before it wakes up.
func (c *chaos) stop(ctx context.Context, dice *rand.Rand) {
	if k := c.victim(dice); k != nil {
		_ = k.cmd.Process.Signal(syscall.SIGSTOP)
		pause(ctx, between(dice, c.lease, 3*c.lease))
		_ = k.cmd.Process.Signal(syscall.SIGCONT)
		c.count("stop")
	}
}

func (c *chaos) term(_ context.Context, dice *rand.Rand) {
	if k := c.victim(dice); k != nil {
		c.drain(k)
		c.count("term")
	}
}

// restartPostgres finishes when the server is back, whatever ctx says: the
// round's end needs it.
func (c *chaos) restartPostgres(_ context.Context, dice *rand.Rand) {
	assert.NoError(c.e.t, c.pg.Restart(context.Background(), pick(dice, dev.StopFast, dev.StopImmediate)))
	c.count("postgres")
}

// restartNATS finishes when the server is back, like restartPostgres.
func (c *chaos) restartNATS(context.Context, *rand.Rand) {
	assert.NoError(c.e.t, c.e.nats.Restart(context.Background()))
	c.count("nats")
}

// breakStream takes one of the space's streams away, or its messages, or half
// of its consumers. NATS may be away just now; then there is nothing to break.
func (c *chaos) breakStream(ctx context.Context, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, jetPatience)
	defer cancel()
	nc, err := natsgo.Connect(c.url, natsgo.NoReconnect(), natsgo.Timeout(jetPatience))
	if err != nil {
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return
	}
	s, err := js.Stream(ctx, "QUIPU_"+c.e.space+"_"+pick(dice, "LANES", "START", "WORK"))
	if err != nil {
		return // away, or being made again
	}
	switch dice.IntN(3) {
	case 0:
		if js.DeleteStream(ctx, s.CachedInfo().Config.Name) == nil {
			c.count("stream")
		}
	case 1:
		if s.Purge(ctx) == nil {
			c.count("purge")
		}
	default:
		c.breakConsumers(ctx, dice, s)
	}
}

func (c *chaos) breakConsumers(ctx context.Context, dice *rand.Rand, s jetstream.Stream) {
	var names []string
	for name := range s.ConsumerNames(ctx).Name() {
		names = append(names, name)
	}
	dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:(len(names)+1)/2] {
		if s.DeleteConsumer(ctx, name) == nil {
			c.count("consumer")
		}
	}
}

// postgresDir is a directory that the database's user can reach.
func postgresDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "quipu-e2e-pg-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the database's user passes it
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// between is a span from low up to high.
func between(dice *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(dice.Int64N(int64(high-low)+1))
}

// pick is one of some values.
func pick[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }

// pause waits, and says whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
