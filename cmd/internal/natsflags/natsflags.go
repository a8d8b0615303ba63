package natsflags

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// Flags are the values of the flags.
type Flags struct {
	options quipu.NATSOptions
	mib     int64
}

// DefineConnection defines the flags of every connection: login, TLS and names.
func (n *Flags) DefineConnection(f *pflag.FlagSet) {
	o := &n.options
	f.StringVar(&o.Credentials, "nats-creds", "", "`FILE` with NATS credentials")
	f.StringVar(&o.NKeySeed, "nats-nkey", "", "`FILE` with an NKey seed")
	f.StringVar(&o.CA, "nats-ca", "", "`FILE` with the authorities that sign the certificates of the NATS servers, in PEM; default: those of the system")
	f.StringVar(&o.Cert, "nats-cert", "", "`FILE` with the client certificate for NATS, in PEM")
	f.StringVar(&o.Key, "nats-key", "", "`FILE` with the key of --nats-cert, in PEM")
	f.StringVar(&o.Domain, "nats-domain", "", "`NAME` of the JetStream domain of the streams")
	f.StringVar(&o.Prefix, "nats-prefix", "", "`NAME` that begins subjects and streams, the same in all processes of the space; default: quipu")
	cli.FromEnv(f, "nats-creds", "nats-nkey", "nats-ca", "nats-cert", "nats-key", "nats-domain", "nats-prefix")
}

// DefineStreams defines the flags of those who make the streams.
func (n *Flags) DefineStreams(f *pflag.FlagSet) {
	o := &n.options
	f.IntVar(&o.Replicas, "nats-replicas", 0, "at least `N` replicas of each stream, up to 5; default: what it has, 1 for a new one")
	f.Int64Var(&n.mib, "nats-max-mib", 0, "at least `N` MiB for each of the three streams; default: what it has, 1024 for a new one")
	f.DurationVar(&o.MaxAge, "nats-max-age", 0, "`TIME` after which a stream drops messages, which are sent again: 1h or more; default: what it has, no limit for a new one")
	f.StringVar(&o.PlacementCluster, "nats-cluster", "", "`NAME` of the cluster for new streams")
	f.StringSliceVar(&o.PlacementTags, "nats-tags", nil, "`LIST` of tags that the servers of a stream must have")
	cli.FromEnv(f, "nats-replicas", "nats-max-mib", "nats-max-age", "nats-cluster", "nats-tags")
}

// Options returns the options that the flags say. The error names a flag whose value is no size.
func (n *Flags) Options() (quipu.NATSOptions, error) {
	o := n.options
	if n.mib < 0 || n.mib > math.MaxInt64>>20 {
		return o, cli.Exitf(cli.CodeUsage, "--nats-max-mib %d: use a number of 1 or more, or leave it out", n.mib)
	}
	o.MaxBytes = n.mib << 20
	return o, nil
}
