package linear

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// Sizes of a round. The checker's work grows with what may be true at the same
// time, so a key is used until it has had that many operations, or that many of
// unknown outcome.
const (
	loadSpan   = 7 * time.Second
	clients    = 5
	engines    = 2
	hotKeys    = 3
	keyCalls   = 50
	keyUnknown = 4
)

// stage is one round: a space of its own on the servers of the run.
type stage struct {
	world.Storm
	t     *testing.T
	url   string // of NATS, which keeps it
	dsn   string
	space string
	base  time.Time
	rt    *quipu.Runtime // nothing stands between it and the servers
	log   *devtest.Log   // of all processes
	late  sync.WaitGroup // calls of clients that were taken for dead

	mu      sync.Mutex
	history []porcupine.Operation
	ids     rune
	hot     []string
	keys    []string       // all so far
	calls   map[string]int // by key
	unknown map[string]int // by key
	gens    map[string]int // the newest generation that was seen, by key
	clients []*client
}

func newStage(t *testing.T, pg *dev.Postgres, round int, dice func(owner string) *rand.Rand) *stage {
	t.Helper()
	w := &stage{
		Storm: world.Storm{T: t, PG: pg, NATS: devtest.NATS(t), Lease: ackWait, Dice: dice},
		t:     t, dsn: pg.DSN("quipu"), space: fmt.Sprintf("r%d", round), base: time.Now(),
		log: &devtest.Log{Keep: 32 << 10}, calls: map[string]int{}, unknown: map[string]int{}, gens: map[string]int{},
	}
	w.url = w.NATS.URL()
	t.Cleanup(w.left)
	home := &world.World{T: t}
	w.rt = home.Open(w.config(w.dsn, w.url, false))
	for _, k := range kinds {
		home.Deploy(w.rt, definition(k.name, k.hooks, k.expires))
	}
	for range clients {
		c := &client{w: w, id: len(w.clients)}
		require.NoError(t, c.open())
		w.clients = append(w.clients, c)
	}
	for slot := range hotKeys {
		w.hot = append(w.hot, "")
		w.renew(slot)
	}
	return w
}

// left waits for the calls of clients that were taken for dead. Each has a limit of its own.
func (w *stage) left() {
	devtest.AwaitAll(w.t, "the calls of clients that were taken for dead", w.late.Wait)
}

// definition is a flow of hooks that follow each other.
func definition(name string, hooks int, expires bool) string {
	head, acts, trans, got, from := "", "", "", "", "start"
	if expires {
		head = "expire: 1s\n"
	}
	for i := range hooks {
		hook := fmt.Sprintf("hook%d", i)
		acts += fmt.Sprintf("  %s: {type: hook, signal: go, key: \"${ job.id }\"}\n", hook)
		trans += fmt.Sprintf("  %s: [%s]\n", from, hook)
		got += fmt.Sprintf("\"${ %s.output.n }\", ", hook)
		from = hook
	}
	return fmt.Sprintf("flow: %s\nversion: \"1\"\n%soutput: {got: [%s]}\nactivities:\n  start: {type: trigger}\n%stransitions:\n%s",
		name, head, got, acts, trans)
}

func (w *stage) config(dsn, nats string, existing bool) quipu.Config {
	return quipu.Config{
		Postgres: dsn, NATS: nats, NATSWait: -1, Space: w.space, NoMigrate: existing, MaxConns: 3, Resend: resend,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// now is the moment on the monotonic clock.
func (w *stage) now() int64 { return time.Since(w.base).Nanoseconds() }

// record keeps an operation.
func (w *stage) record(client int, c call, from int64, said answer, err error) {
	to := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && !said.unknown:
		w.gens[c.key] = max(w.gens[c.key], said.gen)
	case errors.Is(err, errNothing), c.verb.reads():
		return
	case said.unknown, errors.Is(err, store.ErrUnknown):
		said, to = answer{unknown: true}, math.MaxInt64
		w.unknown[c.key]++
		w.Count("unknown")
	case errors.Is(err, store.ErrUnavailable): // it must have had no effect
		w.Count("refused")
		return
	default:
		w.t.Errorf("%s: an error that says nothing of its outcome: %v", describe(c, said), err)
		return
	}
	w.Count("operations")
	if p := said.seen.phase; p != "" {
		w.Count("saw " + string(p))
	}
	if said.gen > 1 {
		w.Count("later generations")
	}
	w.calls[c.key]++
	w.history = append(w.history, porcupine.Operation{ClientId: client, Input: c, Call: from, Output: said, Return: to})
}

// key is one of the hot keys.
func (w *stage) key(dice *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot := dice.IntN(len(w.hot))
	if key := w.hot[slot]; w.calls[key] >= keyCalls || w.unknown[key] >= keyUnknown {
		w.renew(slot)
	}
	return w.hot[slot]
}

func (w *stage) renew(slot int) {
	w.hot[slot] = fmt.Sprintf("key-%d", len(w.keys))
	w.keys = append(w.keys, w.hot[slot])
}

// id is that of a new operation.
func (w *stage) id(odd bool) rune {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids += 2
	if odd {
		return w.ids + 1
	}
	return w.ids
}

func (w *stage) newest(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gens[key]
}

// client is a process of a user, as far as the servers can see: a runtime with
// connections of its own, each through a proxy.
type client struct {
	w  *stage
	id int

	mu       sync.Mutex
	rt       *quipu.Runtime
	pg, nats *cut.Proxy
}

// open makes the client's connections, with nothing in their way.
func (c *client) open() error {
	u, err := url.Parse(c.w.dsn)
	if err != nil {
		return err
	}
	n, err := url.Parse(c.w.url)
	if err != nil {
		return err
	}
	pg, nats := cut.New(c.w.t, u.Host), cut.New(c.w.t, n.Host)
	u.Host, n.Host = pg.Addr(), nats.Addr()
	rt, err := quipu.Open(context.Background(), c.w.config(u.String(), n.String(), true))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rt, c.pg, c.nats = rt, pg, nats
	return nil
}

// do does the call. One that takes longer than the client is patient is that of
// a client which died: nobody hears its outcome, and another takes its place.
func (c *client) do(x call, patience time.Duration) {
	limit := patience
	if x.verb == doWait {
		limit = waitSpan
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	type outcome struct {
		said answer
		err  error
	}
	rt, heard, from := c.rt, make(chan outcome, 1), c.w.now()
	c.w.late.Go(func() {
		defer cancel()
		said, err := c.w.ask(ctx, rt, x)
		heard <- outcome{said, err}
	})
	select {
	case o := <-heard:
		c.w.record(c.id, x, from, o.said, o.err)
	case <-time.After(limit + impatient/2):
		c.w.record(c.id, x, from, answer{unknown: true}, nil)
		c.w.Count("dead clients")
		c.w.late.Go(func() {
			<-heard
			rt.Close()
		})
		for c.open() != nil && c.w.t.Context().Err() == nil { // a server is away just now
			time.Sleep(impatient)
		}
	}
}

// load does calls until the context ends.
func (c *client) load(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		limit := patience
		if dice.IntN(2) == 0 {
			limit = impatient
		}
		x := c.w.choose(dice)
		look := call{verb: doJob, key: x.key, gen: c.w.newest(x.key)}
		around := !x.verb.reads() && look.gen > 0 && dice.IntN(2) == 0
		if around { // what was there before, and what it did
			c.do(look, limit)
		}
		c.do(x, limit)
		if around {
			c.do(look, limit)
		}
		world.Pause(ctx, world.Between(dice, 0, 10*time.Millisecond))
	}
}
