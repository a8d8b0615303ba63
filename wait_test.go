package quipu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// never is a pause between looks that is longer than any test.
const never = time.Hour

// waited is the result of a Wait.
type waited struct {
	out json.RawMessage
	err error
}

// wait waits in its own goroutine.
func (s *space) wait(ctx context.Context, rt *quipu.Runtime, job quipu.Job) <-chan waited {
	end := make(chan waited, 1)
	go func() {
		out, err := rt.Wait(ctx, job)
		end <- waited{out, err}
	}()
	return end
}

// waiting is wait by a client that does nothing else. It returns once the job was looked at,
// which comes after it was listened for.
func (s *space) waiting(ctx context.Context, rt *quipu.Runtime, job quipu.Job) <-chan waited {
	s.t.Helper()
	conn := s.db()
	looked := func() (at time.Time) {
		const last = `SELECT coalesce(max(query_start), 'epoch') FROM pg_stat_activity
			WHERE datname = current_database() AND query ~ '^-- jobs_(outcome|ended):' AND state = 'idle'`
		require.NoError(s.t, conn.QueryRow(s.t.Context(), last).Scan(&at))
		return at
	}
	before := looked()
	end := s.wait(ctx, rt, job)
	asked := 0
	s.until("the job is looked at", func() bool {
		// The server shows the last statement of a connection alone: another one may hide a look.
		if asked++; asked%100 == 0 {
			s.wait(ctx, rt, job) // which looks again
		}
		return looked().After(before)
	})
	return end
}

func (s *space) client(cfg quipu.Config) *quipu.Runtime {
	s.t.Helper()
	cfg.Postgres, cfg.Logger = s.dsn, devtest.Logger(s.t)
	rt, err := quipu.Open(s.t.Context(), cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(rt.Close)
	return rt
}

// W5: the engine of its own process or of another one tells a Wait of the end. If nobody can
// tell, Wait soon finds out itself.
func TestW5WaitIsTold(t *testing.T) {
	t.Parallel()
	server, away := devtest.NATS(t), devtest.NATS(t)
	s := newSpaceWith(t, quipu.Config{Postgres: world.Database(t, ""), NATS: server.URL(), WaitLook: never}, workers.New(), listen)
	deaf := s.client(quipu.Config{NATS: away.URL(), WaitLook: 50 * time.Millisecond})
	require.NoError(t, away.Shutdown())
	for name, rt := range map[string]*quipu.Runtime{
		"the engine's":   s.Runtime,
		"another's":      s.client(quipu.Config{NATS: server.URL(), WaitLook: never}),
		"without NATS":   s.client(quipu.Config{WaitLook: 50 * time.Millisecond}),
		"with NATS away": deaf,
	} {
		for n := range 3 {
			key := fmt.Sprint(name, n)
			job := s.begin("listen", key, nil)
			begin := s.waiting
			if rt == s.Runtime { // its other work asks the database a lot, too
				begin = s.wait
			}
			end := begin(t.Context(), rt, job)
			// The client listens on its own connection; the server knows of that before.
			_, err := rt.Signal(t.Context(), "news.told", key, n)
			require.NoError(t, err)
			select {
			case e := <-end:
				require.NoError(t, e.err, name)
				require.JSONEq(t, fmt.Sprintf(`{"got":%d,"code":200}`, n), string(e.out))
			case <-time.After(time.Minute):
				t.Fatal(name, " was not told")
			}
		}
	}
}

// A Wait ends with its context, and with its Runtime.
func TestW5WaitEnds(t *testing.T) {
	t.Parallel()
	s := newSpace(t, listen)
	job := s.begin("listen", "k", nil)
	rt := s.client(quipu.Config{})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	end, other := s.waiting(ctx, rt, job), s.waiting(t.Context(), rt, job)
	cancel(gone)
	require.ErrorIs(t, devtest.Await(t, "the end of the wait", end).err, gone)
	rt.Close()
	require.ErrorIs(t, devtest.Await(t, "the end of the other wait", other).err, quipu.ErrClosed)
	_, err := rt.Wait(devtest.Context(t), job)
	require.ErrorIs(t, err, quipu.ErrClosed)
	_, err = s.Wait(t.Context(), quipu.Job{ID: journal.JobID{1}, Key: "nobody"})
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.ErrorContains(t, err, "nobody")
}
