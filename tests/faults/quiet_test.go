package faults

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// quietLow and quietHigh bound how long the database or NATS is not itself.
const (
	quietLow  = 500 * time.Millisecond
	quietHigh = 3 * time.Second
)

// quiet are the faults that stop no server and no process, and that somebody makes by hand.
func (s *chaos) quiet() []world.Trouble {
	return []world.Trouble{
		world.Every("pause", 300*time.Millisecond, 2*time.Second, s.pauseConsumers),
		world.Every("read-only", 2*time.Second, 6*time.Second, s.changed("default_transaction_read_only = on")),
		world.Every("asynchronous", 2*time.Second, 6*time.Second, s.changed("synchronous_commit = off")),
		world.Every("old mark", 500*time.Millisecond, 2*time.Second, s.oldMark),
	}
}

// pauseConsumers pauses some consumers for longer than anybody waits: an engine lets them go on.
func (s *chaos) pauseConsumers(ctx context.Context, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = s.streams(ctx, func(ctx context.Context, js jetstream.JetStream, one jetstream.Stream) error {
		names := one.ConsumerNames(ctx)
		for name := range names.Name() {
			if dice.IntN(3) == 0 {
				if _, err := js.PauseConsumer(ctx, one.CachedInfo().Config.Name, name,
					time.Now().AddDate(1, 0, 0)); err != nil {
					return err
				}
			}
		}
		return names.Err()
	})
}

// changed makes new connections have a setting for a while, and closes most of the open ones.
func (s *chaos) changed(setting string) func(context.Context, *rand.Rand) {
	return func(ctx context.Context, dice *rand.Rand) {
		name, _, _ := strings.Cut(setting, " ")
		if !s.alters("SET "+setting, dice.IntN(3) > 0) {
			return // the server is away just now
		}
		world.Pause(ctx, world.Between(dice, quietLow, quietHigh))
		for !s.alters("RESET "+name, false) {
			time.Sleep(100 * time.Millisecond) // it comes back
		}
	}
}

// alters changes a setting of the database, and reports whether the server did it.
func (s *chaos) alters(change string, closes bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg, err := pgx.ParseConfig(s.dsn)
	if !assert.NoError(s.t, err) {
		return true
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "off"
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err = c.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{cfg.Database}.Sanitize()+" "+change); err == nil && closes {
		_, err = c.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.8")
	}
	return err == nil
}

// oldMark publishes the mark of the database that the space has now, once more and later.
func (s *chaos) oldMark(ctx context.Context, dice *rand.Rand) {
	nc, err := natsgo.Connect(s.lane.url)
	if err != nil {
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, "QUIPU_"+s.space+"_MARK")
	if err != nil {
		return
	}
	old, err := stream.GetMsg(ctx, stream.CachedInfo().State.FirstSeq)
	if err != nil || !world.Pause(ctx, world.Between(dice, quietLow, quietHigh)) {
		return
	}
	for range 1 + dice.IntN(40) {
		// it has no room for many
		_, _ = js.PublishMsg(ctx, &natsgo.Msg{Subject: old.Subject, Header: old.Header, Data: old.Data})
	}
}

// silent is a server that takes connections and never answers.
func silent(t testing.TB) (url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var held sync.WaitGroup
	held.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() })
		}
	})
	t.Cleanup(func() { _ = l.Close(); held.Wait() })
	return "http://" + l.Addr().String()
}
