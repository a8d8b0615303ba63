package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/quipu-journal/quipu/transport"
)

// Defaults and limits of a Config.
const (
	// DefaultLanes is the number of lanes of a space (T9).
	DefaultLanes = 16
	// DefaultMaxBytes is the byte limit of each of the three streams: 1 GiB.
	DefaultMaxBytes = 1 << 30
	// DefaultPrefix begins the names of streams and subjects.
	DefaultPrefix = "quipu"
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
	// (4.5). They are read again for each connection.
	Credentials, NKeySeed string
	// CA is the path of a PEM file with the authorities that may have signed the server's
	// certificate; default: those of the system. Cert and Key are the paths of the PEM
	// files of a client certificate. All are read again for each connection, so that they
	// can be replaced (S5).
	CA, Cert, Key string
	// TLS is what else is set of TLS, if not nil (4.5).
	TLS *tls.Config
	// InProcess connects without a socket to a server in this process.
	InProcess natsgo.InProcessConnProvider
	// Inbox is the prefix of this connection's inboxes, see Inbox; default "_INBOX".
	Inbox string
	// Domain is the JetStream domain, default none.
	Domain string
	// Prefix begins the subjects and, in capitals, the names of the streams; default
	// DefaultPrefix. It has the form of a space's name. All processes of a space have the
	// same.
	Prefix string

	// Replicas, MaxBytes, MaxAge and the placement are those of new streams. A stream that
	// is there and has less is raised to them; one that has more keeps it (S5).

	// Replicas of each stream, default 1 (a warning in Preflight), at most 5.
	Replicas int
	// PlacementCluster and PlacementTags place the streams (T5). A stream is not moved from
	// one cluster to another; Preflight warns.
	PlacementCluster string
	PlacementTags    []string
	// MaxBytes is the byte limit of each stream, default DefaultMaxBytes for a new one. A
	// full stream is backpressure: transport.ErrFull, and the rows wait (T5).
	MaxBytes int64
	// MaxAge is the age at which a stream drops messages, at least MinMaxAge; default
	// never. Their rows send them again (T1).
	MaxAge time.Duration

	// LaneAckWait is the ack wait of lanes and starts, WorkAckWait that of topics; each 3
	// s by default (T10).
	LaneAckWait, WorkAckWait time.Duration
	// Pin is how long a lane stays with the process that had its last message without
	// another pull from it; default 3 s, from 100 ms to the smaller of 1 min and LaneAckWait (7.6).
	Pin time.Duration
	// Engines is how many processes share the lanes, including this one; 0 if that is not
	// known. It is called once a second. nil: only this process.
	Engines func() int
	// MaxInFlight is how many messages may wait for their PubAck before Send
	// blocks, default DefaultMaxInFlight, at most MaxInFlightLimit (T11).
	MaxInFlight int
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

// Check says what is wrong with a Config, files included, without connecting. The error is
// a *transport.ConfigError.
func (c Config) Check() error {
	_, err := c.normalise()
	return err
}

// normalise fills in defaults and reports the first fault.
func (c Config) normalise() (Config, error) {
	setDefault(&c.Lanes, DefaultLanes)
	setDefault(&c.Prefix, DefaultPrefix)
	setDefault(&c.Replicas, 1)
	setDefault(&c.LaneAckWait, defaultLaneAckWait)
	setDefault(&c.WorkAckWait, defaultWorkAckWait)
	setDefault(&c.Pin, min(defaultPin, c.LaneAckWait))
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.Heartbeat, defaultHeartbeat)
	setDefault(&c.PullExpires, max(defaultPullExpires, 2*c.Heartbeat))
	if c.Engines == nil {
		c.Engines = func() int { return 1 }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	for _, err := range []error{
		c.checkURL(),
		validateSpace(c.Space),
		between("Lanes", int64(c.Lanes), 1, transport.MaxLanes),
		between("Replicas", int64(c.Replicas), 1, 5),
		between("MaxInFlight", int64(c.MaxInFlight), 1, MaxInFlightLimit),
		between("LaneAckWait in ms", c.LaneAckWait.Milliseconds(), 100, 3_600_000),
		between("WorkAckWait in ms", c.WorkAckWait.Milliseconds(), 100, 3_600_000),
		c.checkPin(),
		between("Heartbeat in ms", c.Heartbeat.Milliseconds(), 100, 10_000),
		between("PullExpires in ms", c.PullExpires.Milliseconds(), 2*c.Heartbeat.Milliseconds(), 300_000),
		c.checkStreams(),
		c.checkFiles(),
	} {
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// checkURL reads the URL where it is used.
func (c Config) checkURL() error {
	if c.URL == "" || c.InProcess != nil {
		return nil
	}
	return transport.CheckURL(c.URL)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func fault(field, format string, a ...any) error {
	return &transport.ConfigError{Field: field, Err: fmt.Errorf(format, a...)}
}

func between(name string, value, low, high int64) error {
	if value < low || value > high {
		return fault(name, "is %d, allowed are %d to %d", value, low, high)
	}
	return nil
}

// checkPin bounds the pin. A pin above the ack wait would hold a lane of a dead process back for
// longer than the messages that it had.
func (c Config) checkPin() error {
	if c.Pin > c.LaneAckWait {
		return fault("Pin", "is %s: at most LaneAckWait, which is %s", c.Pin, c.LaneAckWait)
	}
	return between("Pin in ms", c.Pin.Milliseconds(), 100, 60_000)
}

// prefixName is the form of a prefix: a subject token that can be told apart in capitals.
var prefixName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// checkStreams checks what names and shapes the streams.
func (c Config) checkStreams() error {
	switch token := strings.ContainsAny(c.Domain, " .*>\t\r\n"); {
	case token:
		return fault("Domain", "is %.40q: a name without spaces, dots, * and >", c.Domain)
	case !prefixName.MatchString(c.Prefix):
		return fault("Prefix", "is %.40q: a lower-case letter, then up to 31 of a-z, 0-9 and -", c.Prefix)
	case c.MaxAge != 0 && c.MaxAge < MinMaxAge:
		return fault("MaxAge", "is %s: at least %s, or 0 for no limit", c.MaxAge, MinMaxAge)
	case c.MaxBytes != 0:
		return between("MaxBytes", c.MaxBytes, 1<<20, 1<<50)
	}
	for _, tag := range c.PlacementTags {
		if strings.TrimSpace(tag) == "" {
			return fault("PlacementTags", "are %.80q: none may be empty", c.PlacementTags)
		}
	}
	return nil
}

// checkFiles reads the files that the connection needs. Each connection reads them again.
func (c Config) checkFiles() error {
	if c.Credentials != "" && c.NKeySeed != "" {
		return fault("NKeySeed", "is set beside Credentials: one login is enough")
	}
	switch {
	case c.Cert == "" && c.Key != "":
		return fault("Cert", "is missing: there is a key, and a certificate belongs to it")
	case c.Cert != "" && c.Key == "":
		return fault("Key", "is missing: there is a certificate, and a key belongs to it")
	}
	if c.Credentials != "" {
		text, err := os.ReadFile(c.Credentials)
		if err == nil {
			_, err = nkeys.ParseDecoratedUserNKey(text)
		}
		if err != nil {
			return fault("Credentials", "%.200s cannot be used: %w", c.Credentials, err)
		}
	}
	if c.NKeySeed != "" {
		if _, err := natsgo.NkeyOptionFromSeed(c.NKeySeed); err != nil {
			return fault("NKeySeed", "%.200s cannot be used: %w", c.NKeySeed, err)
		}
	}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = errors.New("it has no certificate in PEM")
		}
		if err != nil {
			return fault("CA", "%.200s cannot be used: %w", c.CA, err)
		}
	}
	if c.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
			return fault("Cert", "%.200s cannot be used with the key %.200s: %w", c.Cert, c.Key, err)
		}
	}
	return nil
}

// validateSpace allows names that are valid as a subject token, in a stream name and in a
// file name.
func validateSpace(space string) error {
	if space == "" || len(space) > MaxSpace {
		return fault("Space", "has %d bytes, allowed are 1 to %d", len(space), MaxSpace)
	}
	for i := range len(space) {
		c := space[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !word {
			return fault("Space", "%q: byte %q is not a letter, digit, '_' or '-'", space, c)
		}
	}
	return nil
}

// options are for a connection that outlives every outage (T5).
func (c Config) options() ([]natsgo.Option, error) {
	opts := []natsgo.Option{
		natsgo.Name("quipu-" + c.Space), // in the server's monitoring
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
		opts = append(opts, natsgo.Secure(c.TLS.Clone()))
	}
	if c.CA != "" {
		opts = append(opts, natsgo.RootCAs(c.CA))
	}
	if c.Cert != "" {
		opts = append(opts, natsgo.ClientCert(c.Cert, c.Key))
	}
	if c.Credentials != "" {
		opts = append(opts, natsgo.UserCredentials(c.Credentials))
	}
	if c.NKeySeed != "" {
		nkey, err := natsgo.NkeyOptionFromSeed(c.NKeySeed)
		if err != nil {
			return nil, fault("NKeySeed", "%.200s cannot be used: %w", c.NKeySeed, err)
		}
		opts = append(opts, nkey)
	}
	return opts, nil
}
