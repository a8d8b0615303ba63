package api_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

// W11: expired jobs, including those of keys used again, are written to a file and then dropped,
// and the file verifies. A job whose flow says never stays, and so does one with the default.
func TestArchive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	flows := make([]string, 0, 3)
	for name, expire := range map[string]string{"brief": "expire: 1s\n", "kept": "expire: never\n", "usual": ""} {
		flows = append(flows, "flow: "+name+"\nversion: \"1\"\n"+expire+`output: {n: "${ wait.output.n }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: go, key: "${ job.id }"}
transitions: {start: [wait]}
`)
	}
	s := newSpace(t, flows...)
	run := func(name, key string) quipu.Job {
		job := s.begin(name, key, nil)
		s.told("go", key, map[string]int{"n": 1})
		s.output(job, `{"n":1}`)
		return job
	}
	expires := func(job quipu.Job) time.Duration { // 0: it is kept for good
		v := s.info(job)
		if v.Expires.IsZero() {
			return 0
		}
		return v.Expires.Sub(v.Closed)
	}
	kept, usual := run("kept", "kept"), run("usual", "usual")
	require.Zero(t, expires(kept))
	require.InDelta(t, float64(720*time.Hour), float64(expires(usual)), float64(time.Minute))

	_, err := quipu.Open(ctx, quipu.Config{Postgres: s.world.Postgres, Archive: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, quipu.ErrConfig)
	dir := t.TempDir()
	tries := 0
	retain := func() { // each try lasts longer, for a machine that has much to do
		s.runFor(300*time.Millisecond<<min(tries, 4),
			quipu.Config{Postgres: s.world.Postgres, Roles: []quipu.Role{quipu.RoleRetention}, Archive: dir})
		tries++
	}
	gone := map[journal.JobID]bool{}
	for i := range 3 {
		keys := []string{"again", fmt.Sprint("once-", i)}
		for _, key := range keys {
			gone[run("brief", key).ID] = true
		}
		tries = 0
		s.until("the jobs expire", func() bool {
			retain()
			return !slices.ContainsFunc(keys, func(key string) bool { _, err := s.Find(ctx, key); return err == nil })
		})
	}
	require.Len(t, gone, 6)
	require.Equal(t, 4, s.tombstones(gone), "there is nothing to compare them with")
	path := filepath.Join(dir, "default-days-0.jsonl")
	tries = 0
	s.until("the partition is archived and dropped", func() bool {
		s.shut()
		retain()
		_, err := os.Stat(path)
		return err == nil
	})
	requireProved(t, path, gone)
	for _, job := range []quipu.Job{kept, usual} {
		s.output(job, `{"n":1}`)
	}
	run("brief", "again")
}

// tombstones counts the jobs whose key was not used again. All are expired.
func (s *space) tombstones(gone map[journal.JobID]bool) (n int) {
	for id := range gone {
		_, err := s.Operator().Fsck(s.t.Context(), id)
		require.Error(s.t, err)
		if errors.Is(err, quipu.ErrTombstone) {
			n++
		}
	}
	return n
}

// shut closes the partitions that have jobs, as if their time had passed.
func (s *space) shut() {
	s.t.Helper()
	ctx := s.t.Context()
	raw := s.db()
	for _, age := range []string{"1 WHERE opened IS NOT NULL", "opened - 120000000 WHERE opened > 1"} {
		_, err := raw.Exec(ctx, "UPDATE quipu_default.partitions SET opened = "+age)
		require.NoError(s.t, err)
		require.NoError(s.t, below.Of(s.Runtime).Extend(ctx)) // opens the next ones, then records that
	}
}

// requireProved reads an archive of some jobs.
func requireProved(t *testing.T, path string, jobs map[journal.JobID]bool) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	r := export.NewReader(file)
	for range len(jobs) {
		h, err := r.Next()
		require.NoError(t, err)
		require.True(t, jobs[h.Job], h.Key)
		delete(jobs, h.Job)
		beside, err := replay.ReadAttachments(r.Attachments())
		require.NoError(t, err)
		require.NotNil(t, beside.Definition)
		report, err := replay.Verify(replay.Header{
			Space: h.Space, Job: h.Job, Key: h.Key, Generation: h.Generation, Head: h.Head, Flow: h.Flow,
		}, nil, beside, r.Entries())
		require.NoError(t, err)
		require.False(t, report.Violated(), "%v", report.First)
		require.Equal(t, h.Head, report.Head)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
}

// W11: however a job begins, its number is of the class for its time of retention.
func TestW11NumbersOfEachWayToBegin(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, `
flow: child
version: "1"
expire: 1h
activities: {start: {type: trigger}}
`, `
flow: parent
version: "1"
expire: never
activities:
  start: {type: trigger}
  child: {type: await, flow: child, id: awaited}
transitions: {start: [child]}
`)
	conn := s.db()
	s.output(s.begin("child", "started", nil), "null")
	s.output(s.begin("parent", "parent", nil), "null")
	_, err := s.Call(devtest.Context(t), "echo", "called", nil)
	require.NoError(t, err)
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	_, err = s.StartTx(ctx, tx, "child", "joined", nil)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))

	var classes string
	require.NoError(t, conn.QueryRow(ctx, "SELECT jsonb_object_agg(key, n / 100000000000000000)::text FROM quipu_default.jobs").Scan(&classes))
	require.JSONEq(t, `{"parent": 0, "started": 1, "awaited": 1, "joined": 1, "called": 2}`, classes)
}
