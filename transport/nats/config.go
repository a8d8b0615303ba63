package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

// Defaults and limits of a Config.
const (
	// DefaultLanes is the number of lanes of a space (T9).
	DefaultLanes = 16
	// DefaultMaxBytes is the byte limit of each of the three streams: 1 GiB.
	DefaultMaxBytes = 1 << 30
	// DefaultMaxInFlight is how many messages may wait for their PubAck.
	DefaultMaxInFlight = 4096
	// MaxInFlightLimit stays below the server's own limit of pending publishes per stream
	// (10 000), above which it refuses messages.
	MaxInFlightLimit = 8192
	// MaxSpace bounds a space's name, in bytes.
	MaxSpace = 64

	// MaxAckPending bounds the unfinished deliveries of one durable consumer over
	// all processes of a space.
	MaxAckPending = 65536
	// MaxWaiting bounds the open pull requests of one durable consumer over all
	// processes of a space; a Consume call holds about three.
	MaxWaiting = 4096
	// DuplicateWindow is how long the server remembers a Nats-Msg-Id.
	DuplicateWindow = 2 * time.Minute

	defaultLaneAckWait = 3 * time.Second
	defaultWorkAckWait = 3 * time.Second
	defaultPin         = 3 * time.Second
	defaultPubAckWait  = 5 * time.Second
	defaultHeartbeat   = 2 * time.Second
	defaultPullExpires = 30 * time.Second
)

// Config says how to connect and which streams to use. Every zero field except URL and
// Space means its documented default.
type Config struct {
	// URL of the NATS servers, comma-separated. Not needed with InProcess or New.
	URL string
	// Space names the streams and subjects: letters, digits, '_' and '-', at most
	// MaxSpace bytes.
	Space string
	// Lanes is the number of lanes, default DefaultLanes, at most
	// transport.MaxLanes. All processes of a space agree on it (T9).
	Lanes int

	// Credentials is the path of a .creds file, NKeySeed the path of an NKey seed file
	// (4.5).
	Credentials, NKeySeed string
	// TLS is used for the connection if not nil (4.5).
	TLS *tls.Config
	// InProcess connects without a socket to a server in this process.
	InProcess natsgo.InProcessConnProvider
	// Name is the connection's name in the server's monitoring; default "quipu-<space>".
	Name string
	// Inbox is the prefix of this connection's inboxes, see Inbox; default "_INBOX".
	Inbox string
	// Domain is the JetStream domain, default none.
	Domain string

	// Replicas of each stream, default 1 (a warning in Preflight), at most 5.
	Replicas int
	// PlacementCluster and PlacementTags place the streams (T5).
	PlacementCluster string
	PlacementTags    []string
	// MaxBytes is the byte limit of each stream, default DefaultMaxBytes. A full stream
	// is backpressure: transport.ErrFull, and the rows wait (T5).
	MaxBytes int64

	// LaneAckWait is the ack wait of lanes and starts, WorkAckWait that of topics; each 3
	// s by default (T10).
	LaneAckWait, WorkAckWait time.Duration
	// Pin is how long a lane stays with the process that had its last message without
	// another pull from it; default 3 s, at most LaneAckWait (7.6). Unpinned gives the
	// messages of a lane to all processes that pull.
	Pin      time.Duration
	Unpinned bool
	// Engines is how many processes share the lanes, including this one; 0 if that is not
	// known. It is called once a second. nil: only this process.
	Engines func() int
	// MaxInFlight is how many messages may wait for their PubAck before Send
	// blocks, default DefaultMaxInFlight, at most MaxInFlightLimit (T11).
	MaxInFlight int
	// PubAckWait bounds the wait for a PubAck, and the look before a re-send; default 5
	// s.
	PubAckWait time.Duration
	// Heartbeat is the idle heartbeat of open pull requests, default 2 s. A binding
	// without a message or heartbeat for two and a half of them is replaced.
	Heartbeat time.Duration
	// PullExpires is the life of one pull request, default 30 s, at least two heartbeats.
	PullExpires time.Duration

	// LeaveStreams says that this process neither makes nor changes streams and consumers.
	// Engines do, and a worker asks them for the consumer of its topic (S4).
	LeaveStreams bool

	// Keys sign and check messages (S1); nil: messages carry no MAC, and none is checked.
	// A message that is not authentic is terminated here, and one that cannot be checked
	// is handed back; nobody else sees either.
	Keys transport.Keys
	// Refused counts those messages: transport.ErrForged or transport.ErrNoKey. It is
	// called from any goroutine and must not block. nil: nobody counts.
	Refused func(why error)

	// Log gets outages and recoveries; default slog.Default().
	Log *slog.Logger
}

// normalise fills in defaults and reports every fault at once.
func (c Config) normalise() (Config, error) {
	setDefault(&c.Lanes, DefaultLanes)
	setDefault(&c.Name, "quipu-"+c.Space)
	setDefault(&c.Replicas, 1)
	setDefault(&c.MaxBytes, DefaultMaxBytes)
	setDefault(&c.LaneAckWait, defaultLaneAckWait)
	setDefault(&c.WorkAckWait, defaultWorkAckWait)
	setDefault(&c.Pin, min(defaultPin, c.LaneAckWait))
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.PubAckWait, defaultPubAckWait)
	setDefault(&c.Heartbeat, defaultHeartbeat)
	setDefault(&c.PullExpires, max(defaultPullExpires, 2*c.Heartbeat))
	if c.Engines == nil {
		c.Engines = func() int { return 1 }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, errors.Join(
		validateSpace(c.Space),
		between("Lanes", int64(c.Lanes), 1, transport.MaxLanes),
		between("Replicas", int64(c.Replicas), 1, 5),
		between("MaxBytes", c.MaxBytes, 1<<20, 1<<50),
		between("MaxInFlight", int64(c.MaxInFlight), 1, MaxInFlightLimit),
		between("LaneAckWait in ms", c.LaneAckWait.Milliseconds(), 100, 3_600_000),
		between("WorkAckWait in ms", c.WorkAckWait.Milliseconds(), 100, 3_600_000),
		between("Pin in ms", c.Pin.Milliseconds(), 100, 60_000),
		between("PubAckWait in ms", c.PubAckWait.Milliseconds(), 100, 60_000),
		between("Heartbeat in ms", c.Heartbeat.Milliseconds(), 100, 10_000),
		between("PullExpires in ms", c.PullExpires.Milliseconds(), 2*c.Heartbeat.Milliseconds(), 300_000),
	)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func between(name string, value, low, high int64) error {
	if value < low || value > high {
		return fmt.Errorf("nats config: %s is %d, allowed are %d to %d", name, value, low, high)
	}
	return nil
}

// validateSpace allows names that are valid as a subject token, in a stream name and in a
// file name.
func validateSpace(space string) error {
	if space == "" || len(space) > MaxSpace {
		return fmt.Errorf("nats config: Space has %d bytes, allowed are 1 to %d", len(space), MaxSpace)
	}
	for i := range len(space) {
		c := space[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !word {
			return fmt.Errorf("nats config: Space %q: byte %q is not a letter, digit, '_' or '-'", space, c)
		}
	}
	return nil
}

// options are for a connection that outlives every outage (T5).
func (c Config) options() ([]natsgo.Option, error) {
	opts := []natsgo.Option{
		natsgo.Name(c.Name),
		natsgo.RetryOnFailedConnect(true),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(250 * time.Millisecond),
		natsgo.ReconnectJitter(250*time.Millisecond, time.Second),
		natsgo.PingInterval(10 * time.Second),
		natsgo.MaxPingsOutstanding(2),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			c.Log.Warn("nats connection reports", "space", c.Space, "error", err)
		}),
	}
	if c.InProcess != nil {
		opts = append(opts, natsgo.InProcessServer(c.InProcess))
	}
	if c.Inbox != "" {
		opts = append(opts, natsgo.CustomInboxPrefix(c.Inbox))
	}
	if c.TLS != nil {
		opts = append(opts, natsgo.Secure(c.TLS))
	}
	if c.Credentials != "" {
		opts = append(opts, natsgo.UserCredentials(c.Credentials))
	}
	if c.NKeySeed != "" {
		nkey, err := natsgo.NkeyOptionFromSeed(c.NKeySeed)
		if err != nil {
			return nil, fmt.Errorf("nats config: NKey seed file %s: %w", c.NKeySeed, err)
		}
		opts = append(opts, nkey)
	}
	return opts, nil
}
