package quipu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
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
		require.Len(t, page, want, tags)
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
	require.Equal(t, int64(1), v.Open)
	require.Equal(t, "101100000000001", v.Activities[0].Ledger)
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
