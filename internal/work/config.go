package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// Defaults of a Config.
const (
	DefaultLanes        = 16
	DefaultConcurrency  = 64
	DefaultAckWait      = 3 * time.Second
	DefaultResponseWait = 3 * time.Second
	DefaultDrain        = 20 * time.Second
	DefaultGrace        = 5 * time.Second
)

// maxHold is how long the outcome of an effect waits for the end of its handler, so that one
// transaction records both (J8).
const maxHold = 300 * time.Microsecond

// Beside is a bus over which an engine of this process takes a response together with the outcome of its
// run's last effect; package local implements it.
type Beside interface {
	// Answer takes both, and tells what came of them (store.Completion). false: it does not.
	Answer(m *transport.Message, x *store.Completion) bool
}

// maxStanding bounds Config.Standing: each has a goroutine.
const maxStanding = 10_000

// Session is the session of this process (W8); package session implements it.
type Session interface {
	// Current is the session, and whether it is certainly alive. If not, no run begins.
	Current() (id int64, alive bool)
	// Watch calls lost when the run's request no longer belongs to it, until stop is
	// called.
	Watch(lease func() (l store.Lease, held bool), lost func(error)) (stop func())
	// Return gives up a lease that no run uses, and tries again until the database
	// accepts.
	Return(l store.Lease)
}

// Config of a Runtime. The zero value of a field means its default; Registry,
// Bus, Store, Session, Space and DeadLetter are required.
type Config struct {
	Registry *workers.Registry
	Bus      transport.Bus
	Store    store.Worker
	// DeadLetter records a message that no handler can ever take, because it is
	// undecodable or foreign, before it is terminated (T3). It is store.Engine's method
	// of that name.
	DeadLetter func(ctx context.Context, d collation.DeadLetter, raw []byte) error
	// Space of the requests; a request of another space is foreign.
	Space string
	// Epoch of the space, which each message carries (T4). Requests of another epoch are acked and
	// counted; 0 accepts every epoch, and so does nil.
	Epoch func() int64
	// Lanes is over how many lanes the jobs are spread (T9), default DefaultLanes; the same in all
	// processes of the space.
	Lanes int
	// Holder names this process in rows; default: the host and a random part. Each run
	// appends a number, so that two runs in one process are two holders.
	Holder string
	// Concurrency is how many requests of a topic are handled at a time, from delivery to
	// ack, unless the topic has its own limit; default DefaultConcurrency, at most
	// transport.MaxSlots. A request is pulled when another is acked, so it also bounds
	// the responses under way.
	Concurrency int
	// Session is the session of this process; its runs hold their requests as long as it
	// lasts (W8).
	Session Session
	// AckWait is the bus's ack wait for topics, default DefaultAckWait. A third of it is
	// the interval of InProgress, and the time after which a long run takes its request's
	// lease.
	AckWait time.Duration
	// ResponseWait bounds the wait for a response's PubAck, default
	// DefaultResponseWait.
	ResponseWait time.Duration
	// Drain is how long running handlers may go on after Run's context has ended, default
	// DefaultDrain. After that their contexts end with workers.ErrDraining.
	Drain time.Duration
	// Grace is how long a handler may go on after its context has ended, default
	// DefaultGrace. After that the run is given up: it is answered, or handed back.
	Grace time.Duration
	// Early gets the topics whose runs may begin before their causes have committed, and how long
	// all their runs take (L4); nil: none may.
	Early *early.Topics
	// Ran is told the topic of each run of a handler that has ended; nil: nobody is.
	Ran func(topic string)
	// Standing is how many suspended durable functions stay in memory where they wait,
	// default none. The next turn of such a function goes on there if it comes to this
	// process, and does not run it from its top. Each of the first 25 turns still does, and
	// one whenever their number has grown by a 25th. Deferred calls of the function run
	// when it is over, or no longer stays.
	Standing int
	// Observer is told of attempts; default observer.Nop.
	Observer observer.Observer
	// Logger gets what operators should see; default slog.Default(). No payloads.
	Logger *slog.Logger
}

// normalise fills in defaults and reports every fault at once.
func (c Config) normalise() (Config, error) {
	orDefault(&c.Lanes, DefaultLanes)
	orDefault(&c.Concurrency, DefaultConcurrency)
	orDefault(&c.AckWait, DefaultAckWait)
	orDefault(&c.ResponseWait, DefaultResponseWait)
	orDefault(&c.Drain, DefaultDrain)
	orDefault(&c.Grace, DefaultGrace)
	if c.Epoch == nil {
		c.Epoch = func() int64 { return 0 }
	}
	if c.Ran == nil {
		c.Ran = func(string) {}
	}
	if c.Observer == nil {
		c.Observer = observer.Nop{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Holder == "" {
		host, _ := os.Hostname() // without a host name the random part is enough
		c.Holder = host + "-" + rand.Text()[:8]
	}
	var errs []error
	missing := func(is bool, field string) {
		if is {
			errs = append(errs, fmt.Errorf("work.Config: %s is required", field))
		}
	}
	missing(c.Registry == nil, "Registry")
	missing(c.Bus == nil, "Bus")
	missing(c.Store == nil, "Store")
	missing(c.DeadLetter == nil, "DeadLetter")
	missing(c.Session == nil, "Session")
	missing(c.Space == "", "Space")
	between := func(field string, v, low, high int64) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("work.Config: %s is %d, allowed is %d to %d", field, v, low, high))
		}
	}
	between("Lanes", int64(c.Lanes), 1, transport.MaxLanes)
	between("Concurrency", int64(c.Concurrency), 1, transport.MaxSlots)
	between("AckWait in ms", c.AckWait.Milliseconds(), 30, time.Hour.Milliseconds())
	between("ResponseWait in ms", c.ResponseWait.Milliseconds(), 1, c.AckWait.Milliseconds())
	between("Standing", int64(c.Standing), 0, maxStanding)
	between("Drain in ms", c.Drain.Milliseconds(), 1, time.Hour.Milliseconds())
	between("Grace in ms", c.Grace.Milliseconds(), 1, time.Hour.Milliseconds())
	return c, errors.Join(errs...)
}

func orDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
