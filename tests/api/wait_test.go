package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

const listen = `
flow: listen
version: "1"
output: {got: "${ wait.output }", code: "${ wait.code }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: news.told, key: "${ job.id }"}
  failed: {type: hook}
transitions: {start: [wait], wait: [{to: failed, on: error}]}
`

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
	cfg.Postgres, cfg.Logger = s.world.Postgres, devtest.Logger(s.t)
	return s.world.Open(cfg)
}

// W5: the engine of its own process or of another one tells a Wait of the end. If nobody can
// tell, Wait soon finds out itself.
func TestW5WaitIsTold(t *testing.T) {
	t.Parallel()
	s, away := newSpaceWith(t, func(c *quipu.Config) { c.WaitLook = never }, workers.New(), listen), devtest.NATS(t)
	deaf := s.client(quipu.Config{NATS: away.URL(), WaitLook: 50 * time.Millisecond})
	require.NoError(t, away.Shutdown())
	for name, rt := range map[string]*quipu.Runtime{
		"the engine's":   s.Runtime,
		"another's":      s.client(quipu.Config{NATS: s.world.NATS.URL(), WaitLook: never}),
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

// A wait and a call whose deadline passes say which job it was, and who knows what it waits for.
func TestALateWaitNamesItsJob(t *testing.T) {
	t.Parallel()
	s := newSpaceOf(t, workers.New())
	var err error
	waited := func() bool { return err != nil && strings.Contains(err.Error(), "wait for job") }
	// a busy machine may not begin it in time, or not learn that it did
	for deadline := 300 * time.Millisecond; !waited(); deadline *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		_, err = s.Call(ctx, "nobody.serves", "late", 1)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	job, unknown := s.Find(t.Context(), "late")
	require.NoError(t, unknown)
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-late.Done()
	for range 2 {
		require.ErrorContains(t, err, `wait for job "late": context deadline exceeded`)
		require.ErrorContains(t, err, "`quipu why late`")
		_, err = s.Wait(late, job)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	_, err = s.Wait(late, quipu.Job{ID: job.ID})
	require.ErrorContains(t, err, "`quipu why "+job.ID.String()+"`", "the ID where the key is not known")
}

// With UntilParked a wait ends when a person must decide; at its deadline it names the dead letter.
func TestWaitsForAPerson(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.Handle(reg, "charge", func(ctx context.Context, in int) (string, error) {
		return effects.Do(ctx, "charge", func(context.Context) (string, error) { return "", errors.New("connection cut off") })
	})
	s := newSpaceOf(t, reg)
	job := quipu.Job{Key: "c-1"}
	_, err := s.Call(devtest.Context(t), "charge", "c-1", 1, quipu.UntilParked(true))
	var parked *quipu.ParkedError
	require.ErrorAs(t, err, &parked)
	id, err := s.Find(t.Context(), "c-1")
	require.NoError(t, err)
	var late *quipu.ParkedError
	s.until("a late wait names the dead letter", func() bool { // it looks for it only so long
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = s.Wait(ctx, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return errors.As(err, &late)
	})
	_, err = s.Wait(t.Context(), job, quipu.UntilParked(true))
	require.ErrorAs(t, err, &parked)
	require.Len(t, parked.DeadLetters, 1)
	letter := parked.DeadLetters[0]
	require.Equal(t, late.DeadLetters, parked.DeadLetters)
	require.Equal(t, []string{"c-1", "quipu_call"}, []string{letter.Key, letter.Flow})
	require.ErrorContains(t, err, `job "c-1" waits for a person; dead letter`)
	require.ErrorContains(t, err, "`quipu why c-1`")

	decide := s.Operator().Decide
	for says, d := range map[string]quipu.Decision{
		`verdict ""`:          {},
		"no Code and Message": {Verdict: quipu.Retry, Code: 500},
		"retry has no Result": {Verdict: quipu.Retry, Result: 1},
		"fail has no Effect":  {Verdict: quipu.Fail, Effect: [32]byte{1}},
		"result is missing":   {Verdict: quipu.Done},
		"code 200":            {Verdict: quipu.Fail, Code: 200},
	} {
		d.DeadLetter = letter.ID
		err := decide(t.Context(), d)
		require.ErrorIs(t, err, quipu.ErrInput)
		require.ErrorContains(t, err, says)
	}
	none := quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Effect: [32]byte{1}, Result: 1}
	err = decide(t.Context(), none)
	require.ErrorIs(t, err, quipu.ErrInput, "no such effect")
	require.ErrorContains(t, err, fmt.Sprintf("dead letter %d: the request has no effect with the key 01", letter.ID))
	require.NotContains(t, err.Error(), "the database")
	require.NoError(t,
		decide(t.Context(), quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Result: "receipt", Who: "ann", Reason: "in their books"}))
	_, err = quipu.WaitAs[int](devtest.Context(t), s.Runtime, job)
	require.ErrorContains(t, err, "output of job c-1 is no int")
}

// Each reason of a dead letter has its advice in docs/cli.md.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "docs/cli.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "### Reasons of dead letters")
	table, _, _ = strings.Cut(table, "\n## ")
	reasons := []view.LetterReason{
		quipu.ReasonParked, quipu.ReasonConfirm, quipu.ReasonResultMisfit, quipu.ReasonNondeterminism, quipu.ReasonUndo,
		quipu.ReasonUnbegun, quipu.ReasonRuns, quipu.ReasonStuck, quipu.ReasonSlow, quipu.ReasonLoads,
		quipu.ReasonUndecodable, quipu.ReasonForeign, quipu.ReasonRefused, quipu.ReasonChanged,
	}
	require.Equal(t, len(reasons)+2, strings.Count(table, "\n|"))
	for _, reason := range reasons {
		require.Contains(t, table, "| `"+string(reason)+"` |")
	}
}
