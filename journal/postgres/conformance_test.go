package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// The spaces of the suite share a database, which takes longer to make than most
// cases last; that they know nothing of each other is on trial as well.
func TestConformance(t *testing.T) {
	t.Parallel()
	dsn, spaces := devtest.Postgres(t), atomic.Int64{}
	journaltest.Run(t, func(t *testing.T) store.Store {
		return openIn(t, dsn, func(c *Config) { c.Space = fmt.Sprint("suite-", spaces.Add(1)) })
	})
}
