package replay_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/edit"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// V11: what a job has taken over is what the named entry contains.
func TestHandOver(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/handover/resume.txt", handedOver)
}

// V11: what a fork has taken over is what stood there at the entry that it goes on from.
func TestHandOverToAFork(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/handover/fork.txt", handedOver)
}

// handedOver changes the parts that are compared of a closed job, old, and of one that goes on with
// it, new. Of old these are an output at entry 5, entry 6, which hands over, and an effect on a
// chain of its own; of new the entries that take them over. What is found in new comes first, then
// what a comparison finds.
func handedOver(t *testing.T, d *datadriven.TestData) string {
	id, chain := journal.DeriveJob("shop", "order-1", 1), journal.GUID{15: 9}
	key, generation, forks := "order-1", int64(2), d.Cmd == "fork"
	next := journal.DeriveJob("shop", key, generation)
	from := &journal.From{Job: id, Generation: 1, Root: id, RootGeneration: 1}
	handsOver := &journal.Entry{
		Job: id, Seq: 6, Kind: journal.KindResumed, Next: next,
		Operator: &journal.Operator{Action: collation.ActionResume, Who: "ann"},
	}
	if forks {
		key, generation = "order-1b", 1
		next = journal.DeriveJob("shop", key, generation)
		from = &journal.From{Job: id, Generation: 1, Fork: &journal.Fork{Job: id, Generation: 1, At: 5}}
		handsOver.Kind, handsOver.Next, handsOver.Operator.Action = journal.KindForked, next, collation.ActionFork
	}
	output := []byte(`{"n":1}`)
	charge := func(taken *journal.Taken, result []byte) *journal.Effect {
		return &journal.Effect{Key: journal.Digest{7}, Name: "charge", Result: result, Taken: taken}
	}
	old := []*journal.Entry{
		{
			Job: id, Seq: 5, Kind: journal.KindLeg2,
			Response: &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: output},
		},
		handsOver,
		{Job: id, Chain: chain, Seq: 1, Kind: journal.KindEffectStarted, Effect: charge(nil, nil)},
		{Job: id, Chain: chain, Seq: 2, Kind: journal.KindEffectCompleted, Effect: charge(nil, output)},
	}
	then := []*journal.Entry{
		{
			Space: "shop", Job: next, Key: key, Generation: generation, Seq: 1, Kind: journal.KindCreated,
			Flow: &journal.FlowRef{Name: "order", Version: "1"}, From: from,
		},
		{Job: next, Seq: 2, Kind: journal.KindLeg2, Response: &journal.Response{
			Kind: journal.ResponseTerminal, Code: 200, Output: output,
			Taken: &journal.Taken{Generation: 1, Seq: 5, Forked: forks},
		}},
	}
	if !forks {
		then = append(then, &journal.Entry{
			Job: next, Chain: journal.GUID{15: 3}, Seq: 1, Kind: journal.KindEffectCompleted,
			Effect: charge(&journal.Taken{Generation: 1, Chain: chain, Seq: 1}, output),
		})
	}
	e := edit.Editor{Root: func(name string) any { return map[string]any{"old": &old, "new": &then}[name] }}
	ofOld, ofNew := "", ""
	for line := range strings.Lines(d.Input) {
		if strings.HasPrefix(line, "old") {
			ofOld += line
		} else {
			ofNew += line
		}
	}
	e.Do(ofOld)
	records := recordsOf(old)
	for _, rec := range records {
		if rec.Chain.IsZero() {
			from.Head = journal.Head{Seq: rec.Seq, Hash: rec.Hash}
		}
	}
	e.Do(ofNew)
	return verifiedHandOver(t,
		replay.Header{Space: "shop", Job: id, Key: "order-1", Generation: 1}, records,
		replay.Header{Space: "shop", Job: next, Key: key, Generation: generation}, recordsOf(then))
}

// verifiedHandOver is what is found in the journal of a job that goes on with an old one, and then in
// the comparison with the old one's.
func verifiedHandOver(
	t *testing.T, old replay.Header, ofOld []journal.Record, next replay.Header, ofNext []journal.Record,
) string {
	r, err := replay.Verify(next, nil, nil, these(ofNext))
	require.NoError(t, err)
	said := fmt.Sprintf("%d copies, V11 %s\n", len(r.Copies), r.Result(replay.V11).Status)
	if v := r.Result(replay.V11).Violation; v != nil {
		said += fmt.Sprintln(v)
	}
	v, err := r.HandOver(old, these(ofOld))
	require.NoError(t, err)
	if v != nil {
		said += fmt.Sprintln("compared,", v)
		r.Violate(v)
		require.True(t, r.Violated())
		require.Equal(t, replay.Violated, r.Result(replay.V11).Status)
	}
	return ids.ReplaceAllString(said, "…")
}

// V10: the row of an element that was answered in the job before is an answer, on its way to the
// engine. Another one's is a request.
func TestElementsThatAreTakenOverAreAnswers(t *testing.T) {
	t.Parallel()
	id, leg1 := journal.DeriveJob("shop", "order-1", 2), journal.GUID{15: 9}
	inputs := make(journal.Sums, 2*len(journal.Sum{}))
	inputs[len(inputs)-1] = 1
	for from, kind := range map[*journal.From]journal.MessageKind{
		nil: journal.MessageRequest, {Generation: 1}: journal.MessageAnswer,
	} {
		j := replay.New(replay.Header{Job: id})
		require.NoError(t,
			j.ApplyEntry(&journal.Entry{Job: id, Seq: 1, Kind: journal.KindCreated, From: from}, journal.Digest{}))
		require.NoError(t, j.ApplyEntry(&journal.Entry{
			Job: id, Seq: 2, Kind: journal.KindLeg1, GUID: leg1, Activity: "w", DAD: ",0,0",
			Elements: &journal.Elements{Count: 2, Parallel: 1, Inputs: inputs},
		}, journal.Digest{}))
		require.Equal(t, kind, j.Rows[journal.DeriveRequest(leg1, 0)].Kind)
		require.Equal(t, journal.MessageRequest, j.Rows[journal.DeriveRequest(leg1, 1)].Kind)
	}
}

func recordsOf(entries []*journal.Entry) []journal.Record {
	records := make([]journal.Record, len(entries))
	for i, e := range entries {
		body := journal.Encode(e)
		records[i] = journal.Record{
			Job: e.Job, Chain: e.Chain, Seq: e.Seq, Body: body, Hash: journal.Next(journal.Digest{}, body),
		}
	}
	return records
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
