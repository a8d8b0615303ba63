package cli

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/journal/postgres"
)

// Configuration makes a usage error of an error about the configuration of a runtime. A
// connection string that cannot be read is named by its flag and its variable.
func Configuration(err error) error {
	if dsn, ok := errors.AsType[*postgres.DSNError](err); ok {
		err = fmt.Errorf("--postgres (QUIPU_POSTGRES): %w", dsn)
	}
	return Exit(CodeUsage, err)
}
