package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal/journaltest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, devtest.Postgres(t))
}

// conforms runs the suite of the stores. All its spaces share one database, which also tests that
// they do not affect each other.
func conforms(t *testing.T, dsn string) *lender {
	t.Helper()
	l := &lender{place: func(_ testing.TB, n int) (string, string) { return dsn, fmt.Sprint("suite-", n) }, clock: true}
	t.Cleanup(l.close)
	journaltest.Run(t, func(t *testing.T) journaltest.Store { return l.lend(t) })
	return l
}

// Advance implements journaltest.Store.
func (s *space) Advance(d time.Duration) {
	if err := s.at.with(context.Background(), func(c *conn) error {
		return c.exec(context.Background(), fmt.Sprintf("UPDATE ahead SET by = by + %d", d.Microseconds()))
	}); err != nil {
		panic(err)
	}
}

// movable lets a space's clock be moved.
const movable = `CREATE TABLE ahead (by bigint NOT NULL); INSERT INTO ahead VALUES (0);
CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE
	RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT by FROM ahead);`
