package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/transport"
)

// natsFlags are the flags of the fields of a bus's configuration (S5).
var natsFlags = map[string]string{
	"URL":         "nats",
	"Credentials": "nats-creds", "NKeySeed": "nats-nkey", "CA": "nats-ca", "Cert": "nats-cert", "Key": "nats-key",
	"Domain": "nats-domain", "Prefix": "nats-prefix", "Replicas": "nats-replicas", "MaxBytes": "nats-max-mib", "MaxAge": "nats-max-age",
	"PlacementCluster": "nats-cluster", "PlacementTags": "nats-tags",
}

// Configuration makes a usage error of an error about the configuration of a runtime. A
// connection string that cannot be read, or an option of NATS that cannot be used, is named by
// its flag and its variable. A nil err stays nil.
func Configuration(err error) error {
	if dsn, ok := errors.AsType[*postgres.DSNError](err); ok {
		err = fmt.Errorf("--postgres (QUIPU_POSTGRES): %w", dsn)
	}
	if bus, ok := errors.AsType[*transport.ConfigError](err); ok && natsFlags[bus.Field] != "" {
		flag := natsFlags[bus.Field]
		err = fmt.Errorf("--%s (%s%s) %w", flag, EnvPrefix, strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), bus.Err)
	}
	return Exit(CodeUsage, err)
}
