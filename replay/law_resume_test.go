package replay_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// resumedJob has the parts of a closed job that a hand-over is compared with: a result at entry
// 5, an effect on a chain of its own, and entry 6, which hands over.
func resumedJob(next journal.JobID, output string) (replay.Header, []journal.Record) {
	id := journal.DeriveJob("shop", "order-1", 1)
	h := replay.Header{Space: "shop", Job: id, Key: "order-1", Generation: 1}
	chain := journal.GUID{15: 9}
	entries := []*journal.Entry{
		{Job: id, Seq: 5, Kind: journal.KindLeg2, Response: &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output)}},
		{Job: id, Seq: 6, Kind: journal.KindResumed, Next: next, Operator: &journal.Operator{Action: collation.ActionResume, Who: "ann"}},
		{Job: id, Chain: chain, Seq: 1, Kind: journal.KindEffectStarted, Effect: &journal.Effect{Key: journal.Digest{7}, Name: "charge"}},
		{Job: id, Chain: chain, Seq: 2, Kind: journal.KindEffectCompleted, Effect: &journal.Effect{Key: journal.Digest{7}, Name: "charge", Result: []byte(output)}},
	}
	records := make([]journal.Record, len(entries))
	for i, e := range entries {
		body := journal.Encode(e)
		records[i] = journal.Record{Job: id, Chain: e.Chain, Seq: e.Seq, Body: body, Hash: journal.Next(journal.Digest{}, body)}
	}
	return h, records
}

// V11: what a job has taken over is what the named entry contains.
func TestHandOver(t *testing.T) {
	t.Parallel()
	next := journal.DeriveJob("shop", "order-1", 2)
	h, records := resumedJob(next, `{"n":1}`)
	from := &journal.From{
		Job: h.Job, Generation: 1, Root: h.Job, RootGeneration: 1, Head: journal.Head{Seq: 6, Hash: records[1].Hash},
	}
	charge := journal.GUID{15: 9}
	main, effect := &journal.Taken{Generation: 1, Seq: 5}, &journal.Taken{Generation: 1, Chain: charge, Seq: 1}
	took := func(from *journal.From, main, effect *journal.Taken, output string) *replay.Report {
		entries := []*journal.Entry{
			{
				Space: "shop", Job: next, Key: "order-1", Generation: 2, Seq: 1, Kind: journal.KindCreated,
				Flow: &journal.FlowRef{Name: "order", Version: "1"}, From: from,
			},
			{Job: next, Seq: 2, Kind: journal.KindLeg2, Response: &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output), Taken: main}},
			{Job: next, Chain: journal.GUID{15: 3}, Seq: 1, Kind: journal.KindEffectCompleted, Effect: &journal.Effect{
				Key: journal.Digest{7}, Name: "charge", Result: []byte(output), Taken: effect,
			}},
		}
		report, err := replay.Verify(replay.Header{Space: "shop", Job: next, Key: "order-1", Generation: 2}, nil, nil, func(yield func(journal.Record, error) bool) {
			for _, e := range entries {
				if !yield(journal.Record{Job: next, Chain: e.Chain, Seq: e.Seq, Body: journal.Encode(e)}, nil) {
					return
				}
			}
		})
		require.NoError(t, err)
		return report
	}
	compare := func(r *replay.Report, records []journal.Record) *replay.Violation {
		v, err := r.HandOver(h, these(records))
		require.NoError(t, err)
		return v
	}
	honest := took(from, main, effect, `{"n":1}`)
	require.Len(t, honest.Copies, 2)
	require.Nil(t, compare(honest, records))

	lie := took(from, main, effect, `{"n":2}`)
	v := compare(lie, records)
	require.NotNil(t, v)
	require.Contains(t, v.String(), "entry 5 of generation 1 has not what is taken over from it")
	lie.Violate(v)
	require.True(t, lie.Violated())
	require.Equal(t, replay.Violated, lie.Result(replay.V11).Status)
	require.NotNil(t, compare(took(from, main, &journal.Taken{Generation: 1, Chain: journal.GUID{15: 9}, Seq: 2}, `{"n":3}`), records))
	require.NotNil(t, compare(honest, slices.Delete(slices.Clone(records), 0, 1)), "the entry is not there")
	other := *from
	other.Head.Hash[0]++
	require.Contains(t, compare(took(&other, main, effect, `{"n":1}`), records).String(), "does not hand over to it")
	_, another := resumedJob(journal.JobID{1}, `{"n":1}`)
	require.Contains(t, compare(honest, another).String(), "does not hand over to it")

	for says, x := range map[string]*replay.Report{
		"is taken over by a job that resumes none":            took(nil, main, effect, `{}`),
		"of generation 2 is taken over by a job that resumes": took(from, &journal.Taken{Generation: 2, Seq: 5}, effect, `{}`),
		"resumes job " + h.Job.String() + " of generation 2":  took(&journal.From{Job: h.Job, Generation: 2, Root: h.Job, RootGeneration: 1, Head: from.Head}, main, effect, `{}`),
		"a fork of job " + h.Job.String() + " does not say":   took(&journal.From{Job: h.Job, Generation: 1, RootGeneration: 1, Head: from.Head}, main, effect, `{}`),
	} {
		v := x.Result(replay.V11).Violation
		require.NotNil(t, v, says)
		require.Contains(t, v.Message, says)
	}
	require.Equal(t, replay.Violated, replayOf(t, h, records[1:2]).Result(replay.V15).Status, "a job that is open is not resumed")
}

// V11: what a fork has taken over is what stood there at the entry that it goes on from.
func TestHandOverToAFork(t *testing.T) {
	t.Parallel()
	fork := journal.DeriveJob("shop", "order-1b", 1)
	h, records := resumedJob(fork, `{"n":1}`)
	forked := journal.Encode(&journal.Entry{Job: h.Job, Seq: 6, Kind: journal.KindForked, Next: fork, Operator: &journal.Operator{Action: collation.ActionFork, Who: "ann"}})
	resumed := records[1]
	records[1] = journal.Record{Job: h.Job, Seq: 6, Body: forked, Hash: journal.Next(journal.Digest{}, forked)}
	from := func(at int64) *journal.From {
		return &journal.From{
			Job: h.Job, Generation: 1, Head: journal.Head{Seq: 6, Hash: records[1].Hash}, Fork: &journal.Fork{Job: h.Job, Generation: 1, At: at},
		}
	}
	took := func(from *journal.From, taken *journal.Taken, output string) *replay.Report {
		header := replay.Header{Space: "shop", Job: fork, Key: "order-1b", Generation: 1}
		first := &journal.Entry{
			Space: "shop", Job: fork, Key: "order-1b", Generation: 1, Seq: 1, Kind: journal.KindCreated,
			Flow: &journal.FlowRef{Name: "order", Version: "1"}, From: from,
		}
		then := &journal.Entry{Job: fork, Seq: 2, Kind: journal.KindLeg2, Response: &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output), Taken: taken}}
		report, err := replay.Verify(header, nil, nil, these([]journal.Record{
			{Job: fork, Seq: 1, Body: journal.Encode(first)}, {Job: fork, Seq: 2, Body: journal.Encode(then)},
		}))
		require.NoError(t, err)
		return report
	}
	compare := func(r *replay.Report, records []journal.Record) *replay.Violation {
		v, err := r.HandOver(h, these(records))
		require.NoError(t, err)
		return v
	}
	copied := &journal.Taken{Generation: 1, Seq: 5, Forked: true}
	honest := took(from(5), copied, `{"n":1}`)
	require.Equal(t, replay.Proved, honest.Result(replay.V11).Status)
	require.Len(t, honest.Copies, 1)
	require.Nil(t, compare(honest, records))
	require.Contains(t, compare(took(from(5), copied, `{"n":2}`), records).String(), "entry 5 of generation 1 has not what is taken over from it")
	records[1] = resumed
	require.Contains(t, compare(honest, records).String(), "does not hand over to it", "it was resumed, not forked")

	resume := from(5)
	resume.Root, resume.RootGeneration = h.Job, 1
	later := from(6)
	other := from(5)
	other.Fork.Job[0]++
	for says, x := range map[string]*replay.Report{
		"which it does not cover":                    took(from(4), copied, `{"n":1}`),
		"is taken over by a fork":                    took(from(5), &journal.Taken{Generation: 1, Seq: 5}, `{"n":1}`),
		"does not say which entry before 6":          took(later, copied, `{"n":1}`),
		"a fork of job " + h.Job.String():            took(other, copied, `{"n":1}`),
		"by a job that resumes none":                 took(nil, copied, `{"n":1}`),
		"generation 1 resumes job " + h.Job.String(): took(resume, copied, `{"n":1}`),
	} {
		v := x.Result(replay.V11).Violation
		require.NotNil(t, v, says)
		require.Contains(t, v.Message, says)
	}
	require.Equal(t, replay.Violated, replayOf(t, h, []journal.Record{{Job: h.Job, Body: journal.Encode(&journal.Entry{Job: h.Job, Seq: 2, Kind: journal.KindForked})}}).Result(replay.V15).Status)
}

// these are records as a journal yields them.
func these(records []journal.Record) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for _, x := range records {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// replayOf verifies the records alone.
func replayOf(t *testing.T, h replay.Header, records []journal.Record) *replay.Report {
	t.Helper()
	first := &journal.Entry{Space: h.Space, Job: h.Job, Key: h.Key, Generation: h.Generation, Seq: 1, Kind: journal.KindCreated, Flow: &journal.FlowRef{Name: "order", Version: "1"}}
	report, err := replay.Verify(h, nil, nil, func(yield func(journal.Record, error) bool) {
		if !yield(journal.Record{Job: h.Job, Seq: 1, Body: journal.Encode(first)}, nil) {
			return
		}
		for i, x := range records {
			x.Seq = int64(i) + 2
			if !yield(x, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	return report
}
