package quipu

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/internal/archive"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/process"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

// Config configures a Runtime. The zero value of a field means its default.
type Config struct {
	// Postgres is the connection string of the database. Required. It may name several hosts; then
	// one that takes writes is used (S6).
	Postgres string
	// NATS is the URL of the servers, several separated by commas. The roles engine and workers
	// need it. A client needs none: the database announces its commits to the engines (W9), and
	// Wait polls. Defaults to none.
	NATS string
	// NATSOptions are the login, TLS, names and streams of NATS (S5). Defaults to none of them.
	NATSOptions NATSOptions
	// Space is the name of the space: [a-z][a-z0-9-]{0,31}. Defaults to DefaultSpace.
	Space string

	// Workers has the handlers of this process. Defaults to none.
	Workers *workers.Registry
	// Roles are the roles of this process in Run. Defaults to AllRoles.
	Roles []Role

	// Lanes is the number of lanes of the space, equal in all its processes (T9). Defaults
	// to 16.
	Lanes int
	// Concurrency is how many requests of a topic are handled at a time. Defaults to 64.
	Concurrency int
	// Committers is the number of concurrent commit transactions. Defaults to 2.
	Committers int
	// MaxBatch is the largest number of messages in a transaction. Defaults to 500, the limit.
	MaxBatch int
	// HotBytes bounds the job states that are kept in memory (W6). Defaults to 64 MiB; a negative
	// value keeps none.
	HotBytes int
	// MaxConns is the number of pooled connections, besides one for each committer and two for
	// the session. Defaults to 8. DoTx has another pool of that size, opened on demand.
	MaxConns int

	// Resend is how long after sending a message the sweeper looks for it (T2). Defaults to 3 s.
	Resend time.Duration
	// Lease is how long a process that does not renew its session keeps what it holds (W8).
	// Defaults to 3 s.
	Lease time.Duration
	// AckWait is how long NATS waits for an ack before it gives a message to another process
	// (T10). Defaults to 3 s, which is the most for lanes.
	AckWait time.Duration
	// Drain is how long running handlers may go on when Run ends (T10). Defaults to 20 s.
	Drain time.Duration
	// NATSWait is how long Open waits for NATS to answer. Defaults to 5 s; with a negative value
	// Open does not wait, and NATS may come up later.
	NATSWait time.Duration
	// WaitLook is the pause between two looks for ended jobs whose waiters got no message (W5).
	// Defaults to 1 s.
	WaitLook time.Duration

	// Accept has the names of checks of the preflight that an operator accepts although they fail,
	// such as fsync-off of a managed database that is durable in another way (S7). The first time
	// is recorded in the space's own chain. Defaults to none.
	Accept []string
	// NoMigrate leaves the schema alone, where another role owns it (4.5). Defaults to false.
	NoMigrate bool
	// Archive is a directory for the journals of expired jobs. Before the role retention drops a
	// partition it writes a file there that journal-verify can read (W11). Defaults to none: the
	// journals are dropped.
	Archive string

	// InProcess connects to a NATS server in this process instead of a URL. Defaults to none.
	InProcess natsgo.InProcessConnProvider

	// Name names this process in the journal and to other processes. Defaults to host/pid.
	Name string
	// Build names the build of this process, in the journal. Defaults to "".
	Build string
	// Observer receives spans and counts; package telemetry makes one. Defaults to none.
	Observer observer.Observer
	// Logger is the log. Defaults to slog.Default().
	Logger *slog.Logger
}

// ConfigFromEnv reads a Config from the environment, in the variables of the worker command:
// QUIPU_POSTGRES, QUIPU_NATS, QUIPU_SPACE, QUIPU_ROLES (with commas), QUIPU_LANES,
// QUIPU_CONCURRENCY, QUIPU_COMMITTERS, QUIPU_MAX_BATCH, QUIPU_HOT_MIB, QUIPU_RESEND, QUIPU_LEASE,
// QUIPU_ACK_WAIT, QUIPU_DRAIN (durations), QUIPU_ARCHIVE, QUIPU_NAME, QUIPU_NO_MIGRATE (true or
// false), QUIPU_ACCEPT (with commas); for NATSOptions QUIPU_NATS_CREDS, QUIPU_NATS_NKEY,
// QUIPU_NATS_CA, QUIPU_NATS_CERT, QUIPU_NATS_KEY, QUIPU_NATS_DOMAIN, QUIPU_NATS_PREFIX,
// QUIPU_NATS_REPLICAS, QUIPU_NATS_MAX_MIB, QUIPU_NATS_MAX_AGE, QUIPU_NATS_CLUSTER, QUIPU_NATS_TAGS
// (with commas); and in these, which the command does not have: QUIPU_MAX_CONNS, QUIPU_NATS_WAIT,
// QUIPU_WAIT_LOOK (durations), QUIPU_BUILD. Without QUIPU_POSTGRES, QUIPU_DEV names the directory
// of a running `worker dev` (ConfigFromDev). An empty variable counts as unset. The error is
// ErrConfig and names the variable. No variable is required here: Open fails where neither
// QUIPU_POSTGRES nor QUIPU_DEV has set Postgres, and Run where a role needs NATS and neither
// QUIPU_NATS nor QUIPU_DEV has set it.
func ConfigFromEnv() (Config, error) {
	var c Config
	if dev := os.Getenv("QUIPU_DEV"); dev != "" && os.Getenv("QUIPU_POSTGRES") == "" {
		var err error
		if c, err = ConfigFromDev(dev); err != nil {
			return c, err
		}
	}
	for name, to := range map[string]*string{
		"POSTGRES": &c.Postgres, "NATS": &c.NATS, "SPACE": &c.Space, "ARCHIVE": &c.Archive, "NAME": &c.Name, "BUILD": &c.Build,
	} {
		*to = cmp.Or(os.Getenv("QUIPU_"+name), *to)
	}
	hot := 0
	errs := []error{
		natsFromEnv(&c.NATSOptions),
		fromEnv("LANES", &c.Lanes, strconv.Atoi), fromEnv("CONCURRENCY", &c.Concurrency, strconv.Atoi),
		fromEnv("COMMITTERS", &c.Committers, strconv.Atoi), fromEnv("MAX_BATCH", &c.MaxBatch, strconv.Atoi), fromEnv("HOT_MIB", &hot, strconv.Atoi),
		fromEnv("RESEND", &c.Resend, time.ParseDuration), fromEnv("LEASE", &c.Lease, time.ParseDuration),
		fromEnv("ACK_WAIT", &c.AckWait, time.ParseDuration), fromEnv("DRAIN", &c.Drain, time.ParseDuration),
		fromEnv("MAX_CONNS", &c.MaxConns, strconv.Atoi), fromEnv("NO_MIGRATE", &c.NoMigrate, strconv.ParseBool),
		fromEnv("NATS_WAIT", &c.NATSWait, time.ParseDuration), fromEnv("WAIT_LOOK", &c.WaitLook, time.ParseDuration),
	}
	if c.HotBytes = hot << 20; os.Getenv("QUIPU_HOT_MIB") == "0" {
		c.HotBytes = -1
	}
	for _, role := range listFromEnv("ROLES") {
		c.Roles = append(c.Roles, Role(role))
	}
	c.Accept = listFromEnv("ACCEPT")
	return c, errors.Join(errs...)
}

// listFromEnv reads a variable with commas.
func listFromEnv(name string) (list []string) {
	for word := range strings.SplitSeq(os.Getenv("QUIPU_"+name), ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}

// fromEnv reads a variable, if it is set.
func fromEnv[T any](name string, to *T, read func(string) (T, error)) error {
	text := os.Getenv("QUIPU_" + name)
	if text == "" {
		return nil
	}
	v, err := read(text)
	if err != nil {
		return fmt.Errorf("%w: QUIPU_%s=%.80s: %w", ErrConfig, name, text, err)
	}
	*to = v
	return nil
}

// ConfigFromDev returns a client's Config for the `worker dev` that runs on a directory (.quipu
// by default): its servers and its space. The error is ErrConfig; where none runs it says what to
// start.
func ConfigFromDev(dir string) (Config, error) {
	path := filepath.Join(dir, "dev.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: no `worker dev` runs on %s: start one with `worker dev --data %s`: %w", ErrConfig, dir, dir, err)
	}
	var file struct{ Postgres, NATS, Space string }
	if err := json.Unmarshal(text, &file); err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
	}
	return Config{Postgres: file.Postgres, NATS: file.NATS, Space: file.Space}, nil
}

// defaultNATSWait gives a starting server time to come up, and reports a mistyped URL soon.
const defaultNATSWait = 5 * time.Second

var spaceName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (c Config) withDefaults() (Config, error) {
	if c.Postgres == "" {
		return c, fmt.Errorf("%w: Config.Postgres is empty: give a connection string such as postgres://user@host:5432/db "+
			"(with ConfigFromEnv: QUIPU_POSTGRES, or QUIPU_DEV=.quipu for the servers of a running `worker dev`)", ErrConfig)
	}
	if err := c.limits(); err != nil {
		return c, err
	}
	if c.Space == "" {
		c.Space = DefaultSpace
	}
	if !spaceName.MatchString(c.Space) {
		return c, fmt.Errorf("%w: space %.40q: a lower-case letter, then up to 31 of a-z, 0-9 and -", ErrConfig, c.Space)
	}
	if slices.Contains(c.Roles, RoleWorkers) && c.Workers == nil {
		return c, fmt.Errorf("%w: the role %s needs handlers: set Workers", ErrConfig, RoleWorkers)
	}
	if c.Workers != nil {
		if err := c.Workers.Check(); err != nil {
			return c, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if len(c.Roles) == 0 {
		c.Roles = AllRoles()
	}
	for _, r := range c.Roles {
		if !slices.Contains(AllRoles(), r) {
			return c, fmt.Errorf("%w: role %q: the roles are %v", ErrConfig, r, AllRoles())
		}
	}
	if err := store.CheckAccept(c.Accept); err != nil {
		return c, fmt.Errorf("%w: Accept: %w", ErrConfig, err)
	}
	if err := archive.Check(c.Archive); err != nil {
		return c, fmt.Errorf("%w: Archive: %w: make the directory first", ErrConfig, err)
	}
	if c.Name == "" {
		c.Name = engine.DefaultWriter()
	}
	if c.Lanes == 0 {
		c.Lanes = engine.DefaultLanes
	}
	if c.NATSWait == 0 {
		c.NATSWait = defaultNATSWait
	}
	c.guard()
	return c, c.checkNATS()
}

// guard fills in observer and log. Those of a user's are called everywhere in the process: where
// one panics, its call does nothing, and the process goes on.
func (c *Config) guard() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	} else {
		c.Logger = slog.New(usercode.Log(c.Logger.Handler()))
	}
	if c.Observer == nil {
		c.Observer = observer.Nop{}
	}
	var once sync.Once
	log := c.Logger
	c.Observer = observer.Guard(c.Observer, func(call, panicked string) {
		once.Do(func() { log.Error("the observer panics: what it is told is lost", "call", call, "panic", panicked) })
	})
}

// limits refuses numbers and times that the parts of the runtime would refuse only later, all at
// once.
func (c *Config) limits() error {
	var faults []string
	for name, n := range map[string]int{
		"Lanes": c.Lanes, "Concurrency": c.Concurrency, "Committers": c.Committers, "MaxBatch": c.MaxBatch, "MaxConns": c.MaxConns,
	} {
		if err := engine.CheckNumber(name, n); err != nil {
			faults = append(faults, fmt.Sprintf("Config.%s is %v", name, err))
		}
	}
	for name, d := range map[string]time.Duration{
		"Resend": c.Resend, "Lease": c.Lease, "AckWait": c.AckWait, "Drain": c.Drain, "WaitLook": c.WaitLook,
	} {
		if err := engine.CheckTime(name, d); err != nil {
			faults = append(faults, fmt.Sprintf("Config.%s is %v", name, err))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("%w: %s", ErrConfig, strings.Join(faults, "; "))
}

// NATSOptions says how a process logs in to NATS, and what the streams of its space are like
// (S5). The zero value of a field means its default. Files are read again for each connection, so
// that they can be replaced while the process runs.
//
// Replicas, MaxBytes, MaxAge and the placement are those of new streams. A stream that is there
// and has less is raised to them. A stream that has more keeps it, and so does one whose process
// says nothing: to take something away, change the stream itself (nats stream edit).
type NATSOptions struct {
	// Credentials is the path of a credentials file (.creds). Defaults to none.
	Credentials string
	// NKeySeed is the path of a file with an NKey seed, instead of Credentials. Defaults to none.
	NKeySeed string
	// CA is the path of a PEM file with the authorities that may have signed the servers'
	// certificates. Defaults to those of the system.
	CA string
	// Cert and Key are the paths of the PEM files of a client certificate and its key. Default to
	// none.
	Cert, Key string
	// TLS is what else is set of TLS, such as certificates that are in no file. Defaults to none.
	TLS *tls.Config

	// Domain is the JetStream domain, for a space whose streams are in another one than the servers
	// of NATS. Defaults to none.
	Domain string
	// Prefix begins the subjects and, in capitals, the names of the streams:
	// [a-z][a-z0-9-]{0,31}, equal in all processes of the space. Defaults to quipu.
	Prefix string

	// Replicas of each stream, at most 5. Defaults to 1.
	Replicas int
	// MaxBytes is the size of each of the three streams, at least 1 MiB. A full stream takes no
	// messages, and their rows wait (T5). One topic has at most as many bytes of the stream of
	// requests as are free. Defaults to 1 GiB.
	MaxBytes int64
	// MaxAge is the age at which a stream drops messages, at least 1 h. Their rows send them again,
	// behind those that wait already (T1). Defaults to no limit.
	MaxAge time.Duration
	// PlacementCluster is the cluster that has the streams. A stream is not moved from one cluster
	// to another. Defaults to none.
	PlacementCluster string
	// PlacementTags are tags that the servers of a stream must have. Default to none.
	PlacementTags []string
}

// natsFromEnv reads the options from the environment.
func natsFromEnv(o *NATSOptions) error {
	for name, to := range map[string]*string{
		"CREDS": &o.Credentials, "NKEY": &o.NKeySeed, "CA": &o.CA, "CERT": &o.Cert, "KEY": &o.Key,
		"DOMAIN": &o.Domain, "PREFIX": &o.Prefix, "CLUSTER": &o.PlacementCluster,
	} {
		*to = os.Getenv("QUIPU_NATS_" + name)
	}
	mib := int64(0)
	err := errors.Join(
		fromEnv("NATS_REPLICAS", &o.Replicas, strconv.Atoi), fromEnv("NATS_MAX_AGE", &o.MaxAge, time.ParseDuration),
		fromEnv("NATS_MAX_MIB", &mib, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 43) }),
	)
	o.MaxBytes = mib << 20
	if tags := os.Getenv("QUIPU_NATS_TAGS"); tags != "" {
		o.PlacementTags = strings.Split(tags, ",")
	}
	return err
}

// nats is what the options set of NATS; nil where no server is named.
func (c Config) nats() *nats.Config {
	if c.NATS == "" && c.InProcess == nil {
		return nil
	}
	o := c.NATSOptions
	return &nats.Config{
		URL: c.NATS, InProcess: c.InProcess, Credentials: o.Credentials, NKeySeed: o.NKeySeed, CA: o.CA, Cert: o.Cert,
		Key: o.Key, TLS: o.TLS,
		Domain: o.Domain, Prefix: o.Prefix, Replicas: o.Replicas, MaxBytes: o.MaxBytes, MaxAge: o.MaxAge,
		PlacementCluster: o.PlacementCluster, PlacementTags: o.PlacementTags,
	}
}

// process is the configuration without what only users see.
func (c Config) process(how below.Mode) process.Config {
	roles := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		roles[i] = string(r)
	}
	return process.Config{
		Postgres: c.Postgres, Space: c.Space, NATS: c.nats(), Workers: c.Workers, Roles: roles, Lanes: c.Lanes,
		Committers:  c.Committers,
		Concurrency: c.Concurrency, MaxBatch: c.MaxBatch, HotBytes: c.HotBytes, MaxConns: c.MaxConns, Resend: c.Resend,
		Lease:   c.Lease,
		AckWait: c.AckWait, Drain: c.Drain, NATSWait: c.NATSWait, WaitLook: c.WaitLook, Accept: c.Accept,
		NoMigrate: c.NoMigrate,
		Archive:   c.Archive, Name: c.Name, Build: c.Build, Observer: c.Observer, Logger: c.Logger, Mode: how,
	}
}

// checkNATS names the option that cannot be used, before anything is connected.
func (c Config) checkNATS() error {
	err := c.process(below.Mode{}).CheckNATS()
	bad, ok := errors.AsType[*transport.ConfigError](err)
	switch {
	case ok && bad.Field == "URL":
		return fmt.Errorf("%w: Config.NATS %w", ErrConfig, bad.Err)
	case ok && strings.HasPrefix(bad.Field, "LaneAckWait"):
		return fmt.Errorf("%w: Config.AckWait in ms %w", ErrConfig, bad.Err)
	case ok:
		return fmt.Errorf("%w: Config.NATSOptions.%w", ErrConfig, err)
	}
	return err
}
