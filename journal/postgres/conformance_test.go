package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, devtest.Postgres(t), true)
}

// conforms runs the contract of the store. All its spaces share one database, which also tests that they do not affect
// each other. With least it is run under the roles of the space (S8), but for repairs, which are the owner's.
func conforms(t *testing.T, dsn string, least bool) *lender {
	t.Helper()
	spaces := func(name string) *lender {
		l := &lender{place: func(_ testing.TB, n int) (string, string) {
			return dsn, fmt.Sprint(name, "-", n)
		}, clock: true}
		t.Cleanup(l.close)
		return l
	}
	owned, roles := spaces("owned"), spaces("roles")
	roles.least = least
	contract(t, func(t testing.TB) *space {
		if strings.Contains(t.Name(), "/Repairs/") {
			return owned.lend(t)
		}
		return roles.lend(t)
	})
	return roles
}

// least lets those who use the space have its roles: an engine, and beside it a worker and retention.
func (s *space) least(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is lent to others, too
	require.NoError(t, s.at.Roles(ctx))
	require.NoError(t, s.at.GrantWorker(ctx, "quipu", []string{"t.work", "t.left", "t.right", "t.next"})) // it plays all roles here
	s.engine, s.worker, s.retention = playing(t, s.at, "engine"), playing(t, s.at, "worker"), playing(t, s.at, "retention")
	s.Thrifty.Store = s.engine
}

// Migrate is the owner's, as what follows.
func (s *space) Migrate(ctx context.Context) error { return s.at.Migrate(ctx) }

// SetExpireDefault implements store.Operator.
func (s *space) SetExpireDefault(ctx context.Context, d time.Duration) error {
	return s.at.SetExpireDefault(ctx, d)
}

// Expire is retention's.
func (s *space) Expire(ctx context.Context, limit int) (bool, error) {
	return s.retention.Expire(ctx, limit)
}

// Lease is a worker's, as what follows.
func (s *space) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	return s.worker.Lease(ctx, job, request, turn, holder, session)
}

// Keep implements store.Requests.
func (s *space) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	return s.worker.Keep(ctx, l)
}

// HandBack implements store.Requests.
func (s *space) HandBack(ctx context.Context, l store.Lease) error { return s.worker.HandBack(ctx, l) }

// Input implements store.Requests.
func (s *space) Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error) {
	return s.worker.Input(ctx, job, request)
}

// Effects implements store.Requests.
func (s *space) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	return s.worker.Effects(ctx, job, request)
}

// Advance moves the clock of the space ahead.
func (s *space) Advance(d time.Duration) {
	if err := s.at.with(context.Background(), func(c *conn) error {
		return c.exec(context.Background(), fmt.Sprintf("UPDATE ahead SET by = by + %d", d.Microseconds()))
	}); err != nil {
		panic(err)
	}
}

// movable lets a space's clock be moved.
const movable = `CREATE TABLE ahead (by bigint NOT NULL); INSERT INTO ahead VALUES (0); GRANT SELECT ON ahead TO PUBLIC;
CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE
	RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT by FROM ahead);`
