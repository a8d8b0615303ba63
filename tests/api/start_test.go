package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// A start can name a version, be delayed, and have tags.
func TestStartOptions(t *testing.T) {
	t.Parallel()
	const text = "flow: v\nversion: \"%\"\noutput: \"%\"\nactivities: {start: {type: trigger}}\n"
	s := newSpace(t, strings.ReplaceAll(text, "%", "1"), strings.ReplaceAll(text, "%", "2"))
	ctx := t.Context()
	job, err := s.Start(ctx, "v", "old", nil, quipu.Version("1"), quipu.Tags{"vip", "customer:42", "vip"})
	require.NoError(t, err)
	s.output(job, `"1"`)
	job, err = s.Start(ctx, "v", "new", nil, quipu.Tags{"customer:42"})
	require.NoError(t, err)
	s.output(job, `"2"`)
	_, err = s.Start(ctx, "v", "none", nil, quipu.Version("3"))
	require.ErrorIs(t, err, quipu.ErrNotFound)
	for tags, want := range map[string]int{"customer:42": 2, "vip": 1, "nobody": 0} {
		page, err := s.Jobs(ctx, quipu.JobFilter{Tags: []string{tags}})
		require.NoError(t, err)
		require.Len(t, page.Jobs, want, tags)
	}

	began := time.Now()
	job, err = s.Start(ctx, "v", "later", nil, quipu.Delay(300*time.Millisecond))
	require.NoError(t, err)
	s.output(job, `"2"`)
	require.GreaterOrEqual(t, time.Since(began), 250*time.Millisecond, "a start's time is up to 50 ms behind (J5)")
	job, err = s.Start(ctx, "v", "tomorrow", nil, quipu.At(time.Now().Add(24*time.Hour)))
	require.NoError(t, err)
	v := s.info(job)
	require.Len(t, v.Messages, 1)
	require.Zero(t, v.Messages[0].Sent)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), v.Messages[0].Due, time.Minute)
	require.Equal(t, int64(1), v.Semaphore)
	require.Equal(t, "101100000000001", v.Activities[0].Ledger.String())
	job, err = s.Start(ctx, "v", "yesterday", nil, quipu.At(time.Now().Add(-24*time.Hour)))
	require.NoError(t, err)
	s.output(job, `"2"`)
	for _, o := range []quipu.StartOption{
		quipu.Delay(-1), quipu.Delay(flow.MaxSleep + 1), quipu.At(time.Now().Add(flow.MaxSleep + time.Hour)),
		quipu.Tags{""},
		quipu.Tags{"a\nb"},
		quipu.Tags{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"},
	} {
		_, err := s.Start(ctx, "v", "bad", nil, o)
		require.ErrorIs(t, err, quipu.ErrInput, "%v", o)
	}
	for _, key := range []string{"old", "later", "tomorrow", "yesterday"} {
		ev, err := s.Evidence(ctx, quipu.Job{Key: key}, "")
		require.NoError(t, err)
		require.Empty(t, ev.Violation, key)
	}
	_, err = s.Find(ctx, "bad")
	require.ErrorIs(t, err, quipu.ErrNotFound)
}

// W3: a caller's transaction that starts a job holds up only starts of the same key, by callers and
// of children, however many there are. Other starts and messages of this process go on while it is
// open, and a start of its key learns how it ended.
func TestW3ACallersTransactionStallsNobody(t *testing.T) {
	t.Parallel()
	s := newSpaceOf(t, workers.New(), `
flow: short
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: echo, input: {n: 1}}
transitions: {start: [work]}
`, `
flow: asks
version: "1"
activities:
  start: {type: trigger}
  child: {type: await, flow: short, id: "${ start.output.key }", input: {}}
transitions: {start: [child]}
`)
	ctx := t.Context()
	conn := s.db()
	for _, commits := range []bool{true, false} {
		key := fmt.Sprint("wanted-", commits)
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		_, err = s.StartTx(ctx, tx, "short", key, map[string]int{})
		require.NoError(t, err)
		begun := s.wanting(key, 12, 6)
		var others sync.WaitGroup
		for i := range 50 { // all end while the transaction is open
			others.Go(func() {
				job, err := s.Start(ctx, "short", fmt.Sprint("other-", commits, i), map[string]int{})
				if err == nil {
					_, err = s.Wait(ctx, job)
				}
				if err != nil {
					t.Errorf("another job: %v", err)
				}
			})
		}
		devtest.AwaitAll(t, "the end of the other jobs", others.Wait)
		select {
		case <-begun:
			t.Fatal("a start of its key did not wait for it")
		case <-time.After(10 * time.Millisecond):
		}
		if commits {
			require.NoError(t, tx.Commit(ctx))
		} else {
			require.NoError(t, tx.Rollback(ctx))
		}
		n := 0
		for range cap(begun) {
			if devtest.Await(t, "the answer to a start of the key", begun) {
				n++
			}
		}
		require.Equal(t, map[bool]int{true: 0, false: 1}[commits], n, "after a rollback the key is free again")
	}
}

// wanting has callers and the children of jobs want one key, more than wait for others at the same
// time. It tells of each whether it began the job.
func (s *space) wanting(key string, callers, children int) (begun chan bool) {
	ctx := s.t.Context()
	begun = make(chan bool, callers+children)
	for range callers {
		go func() {
			job, err := s.Start(ctx, "short", key, map[string]int{})
			if err != nil {
				s.t.Errorf("start %s: %v", key, err)
			}
			begun <- err == nil && !job.Existing
		}()
	}
	for i := range children {
		go func() {
			job, err := s.Start(ctx, "asks", fmt.Sprint("parent-", key, i), map[string]string{"key": key})
			if err == nil {
				_, err = s.Wait(ctx, job)
			}
			if err != nil && !strings.Contains(err.Error(), "belongs to another job") {
				s.t.Errorf("the parent of %s: %v", key, err)
			}
			begun <- err == nil
		}()
	}
	return begun
}

const reserve = `
flow: reserve
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: stock.reserve, retry: {attempts: 3, backoff: 10ms}}
transitions: {start: [work]}
`

// E17, E3: a job and a signal of a Tx effect appear with its rows, exactly once, even if the
// handler runs again after it. Those of a failed effect never existed.
func TestE17StartInAnEffectOfAHandler(t *testing.T) {
	t.Parallel()
	var s *space
	var tries atomic.Int32
	reg := workers.New()
	workers.Handle(reg, "stock.reserve", func(ctx context.Context, _ any) (string, error) {
		attempt := tries.Add(1)
		key, err := quipu.DoTx(ctx, "place", func(ctx context.Context, tx quipu.EffectTx) (string, error) {
			key := "shipping-of-" + workers.Info(ctx).Key
			_, err := tx.Exec(ctx, "INSERT INTO placed VALUES ($1)", key)
			_, errStart := s.StartTx(ctx, tx, "listen", key, nil)
			_, errSignal := s.SignalTx(ctx, tx, "news.told", key, "shipped")
			if err = errors.Join(err, errStart, errSignal); err == nil && attempt == 1 {
				err = errors.New("not yet")
			}
			return key, err
		})
		if err == nil && attempt == 2 {
			err = errors.New("behind the effect")
		}
		return key, err
	})
	s = newSpaceOf(t, reg, reserve, listen)
	ctx := t.Context()
	db := s.db()
	_, err := db.Exec(ctx, "CREATE TABLE placed (key text)")
	require.NoError(t, err)
	s.output(s.begin("reserve", "order-1", nil), `null`)
	require.EqualValues(t, 3, tries.Load())
	shipping, err := s.Find(ctx, "shipping-of-order-1")
	require.NoError(t, err)
	s.output(shipping, `{"got":"shipped","code":200}`)
	var rows int
	require.NoError(t, db.QueryRow(ctx, "SELECT count(*) FROM placed").Scan(&rows))
	require.Equal(t, 1, rows)
	counts, err := below.Of(s.Runtime).Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[journal.JobState]int64{journal.JobCompleted: 2}, counts)
	tx, err := db.Begin(ctx)
	require.NoError(t, err)
	_, err = s.StartTx(ctx, tx, "nobody", "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	_, err = s.SignalTx(ctx, tx, "no topic", "k", nil)
	require.ErrorIs(t, err, quipu.ErrInput)
	require.NoError(t, tx.Rollback(ctx))
}

// An input is taken as it is, and the limit counts the stored bytes. Bad JSON is refused with the
// place of the fault.
func TestInputIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "flow: echoes\nversion: \"1\"\noutput: \"${ start.output }\"\nactivities: {start: {type: trigger}}\n")
	text := strings.Repeat("<&>", 100)
	for key, in := range map[string]any{"go": text, "raw": json.RawMessage(`"` + text + `"`)} {
		s.output(s.begin("echoes", key, in), `"`+text+`"`)
	}
	s.output(s.begin("echoes", "nil", json.RawMessage(nil)), "null")
	s.begin("echoes", "long", strings.Repeat("<&>", quipu.MaxInput/3-1))
	for says, in := range map[string]any{"the limit is 1048576": strings.Repeat("x", quipu.MaxInput-1), "byte 6": json.RawMessage(`{"a": `)} {
		_, err := s.Start(t.Context(), "echoes", "bad", in)
		require.ErrorIs(t, err, quipu.ErrInput)
		require.ErrorContains(t, err, says)
	}
}
