package quipu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	require.NoError(s.t, err)
	defer func() { _ = conn.Close(s.t.Context()) }()
	looked := func() (at time.Time) {
		const last = `SELECT coalesce(max(query_start), 'epoch') FROM pg_stat_activity
			WHERE datname = current_database() AND query ~ '^-- jobs_(outcome|ended):' AND state = 'idle'`
		require.NoError(s.t, conn.QueryRow(s.t.Context(), last).Scan(&at))
		return at
	}
	before := looked()
	end := s.wait(ctx, rt, job)
	s.until("the job is looked at", func() bool { return looked().After(before) })
	return end
}

func (s *space) client(cfg quipu.Config) *quipu.Runtime {
	s.t.Helper()
	cfg.Postgres = s.dsn
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
	s := newSpaceWith(t, quipu.Config{Postgres: devtest.Postgres(t), NATS: server.URL(), WaitLook: never}, workers.New(), listen)
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
	require.ErrorIs(t, (<-end).err, gone)
	rt.Close()
	require.ErrorIs(t, (<-other).err, quipu.ErrClosed)
	_, err := rt.Wait(t.Context(), job)
	require.ErrorIs(t, err, quipu.ErrClosed)
	_, err = s.Wait(t.Context(), quipu.Job{ID: journal.JobID{1}, Key: "nobody"})
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.ErrorContains(t, err, "nobody")
}

// asking counts the reads of a store.
type asking struct {
	engine.Ends
	mu    sync.Mutex
	looks []look
	read  int // jobs
}

type look struct {
	at   time.Time
	jobs int
}

func (a *asking) Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error) {
	a.mu.Lock()
	a.looks = append(a.looks, look{time.Now(), len(ids)})
	a.mu.Unlock()
	return a.Ends.Ended(ctx, ids)
}

func (a *asking) Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error) {
	a.mu.Lock()
	a.read += len(ids)
	a.mu.Unlock()
	return a.Ends.Outcomes(ctx, ids)
}

func (a *asking) counts() (looks []look, read int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.looks, a.read
}

// W5: for a thousand waits the jobs are read once at the beginning and once at the end, and in
// between one query now and then serves all.
func TestW5AThousandWait(t *testing.T) {
	t.Parallel()
	const n, pause, looks = 1000, 200 * time.Millisecond, 5
	ctx, dsn := t.Context(), devtest.Postgres(t)
	client, err := quipu.Open(ctx, quipu.Config{Postgres: dsn})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	f, err := flow.Parse("hello.yaml", []byte(hello))
	require.NoError(t, err)
	require.NoError(t, client.Deploy(ctx, f))
	a := &asking{Ends: below.Of(client)}
	w := engine.NewWaiters(engine.WaitersConfig{Store: a, Look: pause})
	t.Cleanup(w.Close)
	var wg sync.WaitGroup
	for first := 0; first < n; first += quipu.MaxStarts {
		reqs := make([]quipu.StartRequest, quipu.MaxStarts)
		for i := range reqs {
			reqs[i] = quipu.StartRequest{Flow: "hello", Key: fmt.Sprint("k", first+i)}
		}
		started, err := client.StartMany(ctx, reqs)
		require.NoError(t, err)
		for _, r := range started {
			wg.Go(func() {
				if o, err := w.Wait(ctx, r.Job.ID, false); err != nil || o.State != journal.JobCompleted {
					t.Errorf("%+v, %v", o, err)
				}
			})
		}
	}
	var all []look
	var read, from int // the look from which on all wait
	require.Eventually(t, func() bool {
		all, read = a.counts()
		from = slices.IndexFunc(all, func(l look) bool { return l.jobs == n })
		return from >= 0 && len(all) > from+looks
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, n, read, "each once, at first")
	for i, l := range all[from+1:] {
		require.Equal(t, n, l.jobs)
		require.GreaterOrEqual(t, l.at.Sub(all[from+i].at), pause)
	}
	newSpaceWith(t, quipu.Config{Postgres: dsn, NATS: devtest.NATS(t).URL()}, workers.New())
	wg.Wait()
	_, read = a.counts()
	require.Equal(t, 2*n, read, "and once when it had ended")
}
