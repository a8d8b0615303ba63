package postgres

import (
	"fmt"
	"testing"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// All spaces of the suite share one database, which also tests that they do not affect each
// other.
func TestConformance(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	l := &lender{place: func(_ testing.TB, n int) (string, string) { return dsn, fmt.Sprint("suite-", n) }}
	t.Cleanup(l.close)
	journaltest.Run(t, func(t *testing.T) store.Store { return l.lend(t) })
}
