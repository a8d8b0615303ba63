package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Defaults of Config.
const (
	DefaultLanes      = 16
	DefaultCommitters = 2
	DefaultAside      = 4
	DefaultLaneSlots  = 256
	DefaultStartSlots = 512
	DefaultResend     = 3 * time.Second
	DefaultSweep      = time.Second
	DefaultHotBytes   = 64 << 20
	DefaultLease      = session.DefaultLease
	DefaultAckWait    = 3 * time.Second
	DefaultSlow       = 5 * time.Second
)

// Config configures an Engine and a Committer. A field's zero value means the default that its
// comment states.
type Config struct {
	Store store.Engine  // required
	Bus   transport.Bus // required for an engine
	Flows *Flows        // compiled flows shared with others; its own
	Space string        // required, for names and logs
	// Private says that the space keeps digests of the keys of jobs and signals (S15).
	Private bool

	Lanes      int // of the space, equal in all its processes; 16
	Committers int // transactions in progress; 2; more only cost
	Aside      int // transactions in progress that wait for others; 4
	MaxBatch   int // messages per transaction; 500 (store.MaxBatch)
	LaneSlots  int // unfinished deliveries per lane; 256
	StartSlots int // unfinished deliveries of new jobs; 512

	// Local hands requests to the workers of this process; nil: all go by the bus (W7).
	Local Local
	// Session is the session of this process; rows name it when the process has or publishes
	// them (W8). nil: none. Lease is how long a session lasts without a renewal; 3 s.
	Session Session
	Lease   time.Duration
	// AckWait is the bus's ack wait for lanes and starts; 3 s. After a third of it a waiting
	// delivery is reported as in progress.
	AckWait time.Duration
	// HotBytes bounds the hot states in memory, which save the load for a job's next message
	// (W6); 64 MiB, negative: none.
	HotBytes int
	// Stepwise commits at every mark (C11): for tests and for watching a
	// protocol step by step.
	Stepwise bool
	// NoFold keeps the Leg1 of children out of the plan that dispatches them.
	NoFold bool
	// NoFollow leaves what a batch causes to later batches (L2).
	NoFollow bool
	// Early are the topics of which requests may begin before their cause has committed (L4); nil:
	// none.
	Early *early.Topics
	// Traffic counts the messages that are decided in the transactions that cause them, and the
	// requests of early runs; nil: nobody does.
	Traffic *traffic.Counts
	// Resend is when the sweeper looks for a message that should have been handled, and sends it
	// again if it is lost; 3 s, doubling (T2).
	Resend time.Duration
	// Sweep is the longest pause between two looks for due rows; 1 s. A look comes sooner
	// when the next row is due, or when a commit announces that one is (W9).
	Sweep time.Duration
	// Slow is how long the decision on one item may take on this machine; 5 s. It is then stopped
	// without a verdict.
	Slow time.Duration
	// Jitter draws the random part of a wait, 0 to below its argument;
	// math/rand/v2. A simulation gives its own.
	Jitter func(below time.Duration) time.Duration
	// Ended is called after the commits that end jobs, completion tasks included, for
	// Waiters.Told (W5). It must not block; nil: nobody waits here.
	Ended func(jobs []Ended)

	Writer   string // names this process in entries (audit only); host and pid
	Build    string // audit only
	Login    string // of this process at the database, for the entries of operators (S8)
	Observer observer.Observer
	Logger   *slog.Logger
}

// Local is a bus that hands requests over within the process (W7): package
// internal/local.
type Local interface {
	// Take reserves a slot for a request of the topic, and names its holder.
	Take(topic string) (holder string, ok bool)
	// Begin gives a request with a reserved slot to its handler before its cause has committed (L4).
	// The caller calls run. After an error, Drop the slot.
	Begin(m *transport.Message, cause *early.Cause) (run func(), err error)
	// Drop gives back the slot of a request that is not sent.
	Drop(topic string)
}

// Session is the session of the process: package session.
type Session interface {
	// Current returns the session, and whether it is certainly alive.
	Current() (id int64, alive bool)
	// Alive reports whether id is the present session and certainly alive.
	Alive(id int64) bool
	// Ended learns that a commit was refused because the session has ended.
	Ended(id int64)
	// Return hands back a lease that no run has, as soon as the database can be reached.
	Return(l store.Lease)
}

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("engine configuration")

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil || c.Space == "" {
		return c, fmt.Errorf("%w: Store and Space are required", ErrConfig)
	}
	setInt(&c.Lanes, DefaultLanes)
	setInt(&c.Committers, min(DefaultCommitters, max(1, runtime.NumCPU())))
	setInt(&c.Aside, DefaultAside)
	setInt(&c.MaxBatch, store.MaxBatch)
	setInt(&c.LaneSlots, DefaultLaneSlots)
	setInt(&c.StartSlots, DefaultStartSlots)
	if c.HotBytes == 0 {
		c.HotBytes = DefaultHotBytes
	}
	setDuration(&c.Resend, DefaultResend)
	setDuration(&c.Lease, DefaultLease)
	setDuration(&c.AckWait, DefaultAckWait)
	setDuration(&c.Sweep, DefaultSweep)
	setDuration(&c.Slow, DefaultSlow)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Local != nil && c.Session == nil {
		return c, fmt.Errorf("%w: Local needs a Session", ErrConfig)
	}
	for _, f := range []struct {
		name string
		n    int
	}{
		{"MaxBatch", c.MaxBatch},
		{"Lanes", c.Lanes},
		{"LaneSlots", c.LaneSlots},
		{"StartSlots", c.StartSlots},
		{"Committers", c.Committers},
		{"Aside", c.Aside},
	} {
		if err := CheckNumber(f.name, f.n); err != nil {
			return c, fmt.Errorf("%w: Config.%s is %w", ErrConfig, f.name, err)
		}
	}
	if c.Writer == "" {
		c.Writer = DefaultWriter()
	}
	if c.Observer == nil {
		c.Observer = observer.Nop{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func setInt(v *int, def int) {
	if *v <= 0 {
		*v = def
	}
}

func setDuration(v *time.Duration, def time.Duration) {
	if *v <= 0 {
		*v = def
	}
}

// Times in leases.
const (
	// inFlight is how long a call without a timeout may go on after its process has gone: 30 s
	// with the default lease.
	inFlight = 10
	// outside is how long a run may take to notice that somebody else has answered its request,
	// and to end: 9 s with the default lease.
	outside = 3
)

// Mode returns how the configured engine cuts and joins plans (C11).
func (c *Config) Mode() collation.Mode {
	return collation.Mode{
		Stepwise: c.Stepwise, Fold: !c.NoFold && !c.Stepwise,
		Resend:   collation.Micros(c.Resend.Microseconds()),
		InFlight: collation.Micros((inFlight * c.Lease).Microseconds()),
		Outside:  collation.Micros((outside * c.Lease).Microseconds()),
		Private:  c.Private, Writer: c.Writer, Build: c.Build, Login: c.Login,
	}
}

// KeptKey is what the space keeps of a key (S15).
func (c *Config) KeptKey(key string) string {
	if !c.Private || key == "" {
		return key
	}
	return journal.PrivateKey(c.Space, key)
}

// DefaultWriter names this process by its host and its id.
func DefaultWriter() string {
	host, _ := os.Hostname()
	return host + "/" + strconv.Itoa(os.Getpid())
}
