package cli

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/transport"
)

// Configuration makes a usage error of an error about the configuration of a runtime. A
// connection string or URL that cannot be read is named by its flag and its variable. A nil err
// stays nil.
func Configuration(err error) error {
	if dsn, ok := errors.AsType[*postgres.DSNError](err); ok {
		err = fmt.Errorf("--postgres (QUIPU_POSTGRES): %w", dsn)
	}
	if url, ok := errors.AsType[*transport.URLError](err); ok {
		err = fmt.Errorf("--nats (QUIPU_NATS): %w", url)
	}
	return Exit(CodeUsage, err)
}
