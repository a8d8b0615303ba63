package quipu

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/process"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

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
		URL: c.NATS, InProcess: c.InProcess, Credentials: o.Credentials, NKeySeed: o.NKeySeed, CA: o.CA, Cert: o.Cert, Key: o.Key, TLS: o.TLS,
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
		Postgres: c.Postgres, Space: c.Space, NATS: c.nats(), Workers: c.Workers, Roles: roles, Lanes: c.Lanes, Committers: c.Committers,
		Concurrency: c.Concurrency, MaxBatch: c.MaxBatch, HotBytes: c.HotBytes, MaxConns: c.MaxConns, Resend: c.Resend, Lease: c.Lease,
		AckWait: c.AckWait, Drain: c.Drain, NATSWait: c.NATSWait, WaitLook: c.WaitLook, Accept: c.Accept, NoMigrate: c.NoMigrate,
		Archive: c.Archive, Name: c.Name, Build: c.Build, Observer: c.Observer, Logger: c.Logger, Mode: how,
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
