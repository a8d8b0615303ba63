package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// pending lists the open obligations, each with what it waits for.
func pending(job *replay.Job) []string {
	waits := map[string]string{}
	for _, o := range job.Open() {
		waits[o.Activity+" "+o.DAD] += " [" + says(o) + "]"
	}
	var out []string
	for _, o := range job.Obligations {
		at := o.Activity + " " + string(o.DAD)
		out = append(out, at+":"+waits[at])
	}
	return out
}

func says(o replay.Open) string {
	out := o.What
	switch {
	case o.What == "wait":
		out = fmt.Sprintf("waits for signal %s with key %q", o.Topic, o.Key)
	case o.What == string(journal.MessageRequest) && o.Topic != "":
		out = "request to " + o.Topic
	case o.What == string(journal.MessageWakeUp) && o.NextAt > 0:
		out = "timer"
	}
	if o.Name != "" {
		out += fmt.Sprintf(", %q of a function", o.Name)
	}
	if o.Suspended {
		out += ", suspended"
	}
	if o.Pauses > 0 {
		out += fmt.Sprintf(", waits for %d, of which %d came", o.Pauses, o.Came)
	}
	if o.Turn > 1 || o.Attempt > 1 {
		out += fmt.Sprintf(", turn %d, attempt %d", o.Turn, o.Attempt)
	}
	if o.Element > 0 {
		out += fmt.Sprintf(", element %d", o.Element)
	}
	if o.NextAt > 0 {
		out += ", due " + time.UnixMicro(o.NextAt).UTC().Format(time.RFC3339)
	}
	if o.Held != "" {
		out += ", held: " + o.Held
	}
	return out + fmt.Sprintf(", since entry %d", o.Since)
}

// J10: what is open at any seq, and why.
func TestTimeTravelOverWhatIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		j    *replaytest.Journal
		at   int
		want []string
	}{
		"a job that has begun": {made("raced"), 1, []string{"t ,0: [start, since entry 1]"}},
		"successors":           {made("raced"), 2, []string{"h ,0,0: [leg1, since entry 2]", "tell ,0,0: [leg1, since entry 2]"}},
		"elements": {made("listed"), 4, []string{
			"w ,0,0: [request, element 1, since entry 3] [request, element 2, due 2023-11-14T22:13:20Z, since entry 3]",
		}},
		"a held element": {made("listed"), 3, []string{
			"w ,0,0: [request, since entry 3] [request, element 1, since entry 3] [request, element 2, held: parallel, since entry 3]",
		}},
		"a wait and its timer": {made("slept"), 3, []string{
			"o ,0,0: [leg1, since entry 2]",
			`h ,0,0: [timer, due 2023-11-15T22:13:20Z, since entry 3] [waits for signal go with key "k1", since entry 3]`,
		}},
		"a cycle": {made("twice"), 6, []string{"p ,0,0: [cycle, since entry 6]"}},
		"a repeating hook beside its pass": {made("ticked"), 4, []string{
			`h ,0,0: [waits for signal tick with key "k", since entry 3]`, "w ,0,0,0: [leg1, since entry 4]",
		}},
		"the end": {made("listed"), 7, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := apply(t, c.j, c.at)
			require.ElementsMatch(t, c.want, pending(job))
			require.Len(t, job.Obligations, int(job.Semaphore))
		})
	}
}

// J10: turns, attempts and children of an await.
func TestTimeTravelOverChildren(t *testing.T) {
	t.Parallel()
	j := made("awaited")
	for at, want := range map[int]struct{ turn, attempt, open int }{2: {0, 0, 0}, 3: {1, 1, 1}, 4: {2, 2, 1}, 5: {2, 2, 0}} {
		job := apply(t, j, at)
		var got replay.Instance
		if i := job.Instances[instance("a", ",0,0")]; i != nil {
			got = *i
		}
		require.Equal(t, []int{want.turn, want.attempt}, []int{got.Turn, got.Attempt}, "at %d", at)
		require.Len(t, job.Children, want.open, "at %d", at)
		for g, c := range job.Children {
			require.Equal(t, collation.ChildID(got.Leg1, got.Turn), c.Job)
			require.Equal(t, c.Job.Start(), g)
			require.Equal(t, want.turn, c.Turn)
		}
	}
	job := apply(t, j, 4)
	require.Len(t, job.Obligations, 1)
	require.Equal(t, "001100000000001", job.Instances[instance("a", ",0,0")].Ledger.String())
	open := job.Open()
	require.Len(t, open, 2, "the bound and the child")
	require.Equal(t, "child", open[1].What)
	require.Equal(t, 2, open[1].Turn)
	require.Positive(t, open[1].NextAt)
	begun := apply(t, made("child"), 1)
	require.Equal(t, "a", begun.Parent.Activity)
	require.True(t, begun.Parent.Awaited)
}

// J10: passes have results at their own addresses, elements under their own names.
func TestPassesAndElements(t *testing.T) {
	t.Parallel()
	job := apply(t, made("twice"), 14, replay.KeepOutputs)
	require.JSONEq(t, `0`, string(job.Instances[instance("p", ",0,0")].Output))
	require.Len(t, job.Passes, 2)
	require.Equal(t, int64(7), job.Passes[instance("p", ",0,1")].ResultSeq)
	require.Equal(t, int64(11), job.Passes[instance("p", ",0,2")].ResultSeq)
	require.True(t, job.Instances[instance("p", ",0,0")].Pivot)

	job = apply(t, made("listed"), 6, replay.KeepOutputs)
	require.Equal(t, 1, job.Instances[instance("w", ",0,0")].Open)
	require.JSONEq(t, `1`, string(job.Passes[instance("w[0]", ",0,0")].Output))
	require.JSONEq(t, `3`, string(job.Passes[instance("w[2]", ",0,0")].Output))
	job = apply(t, made("listed"), 7, replay.KeepOutputs)
	require.JSONEq(t, `[1,4,3]`, string(job.Instances[instance("w", ",0,0")].Output))

	job = apply(t, made("ticked"), 12, replay.KeepOutputs)
	require.JSONEq(t, `{"signal":1}`, string(job.Instances[instance("h", ",0,0")].Output))
	require.JSONEq(t, `{"signal":2}`, string(job.Passes[instance("h", ",0,1")].Output))
	require.JSONEq(t, `{"signal":3}`, string(job.Passes[instance("h", ",0,2")].Output))
	require.Len(t, job.Signals, 3)
	require.Empty(t, job.Waits)
}

// Every result points to the entry that holds it (J7), as the store reads it.
func TestResultsAreThoseOfTheirEntries(t *testing.T) {
	t.Parallel()
	for _, j := range []*replaytest.Journal{made("twice"), made("listed"), made("raced"), made("slept"), made("ticked"), made("awaited"), made("joined"), made("halted"), made("failing")} {
		entries := j.Entries()
		job := apply(t, j, len(entries), replay.KeepOutputs)
		check := func(key collation.InstanceKey, r *replay.Recorded) {
			if r.ResultSeq == 0 {
				return
			}
			want := collation.ResultAt(entries[r.ResultSeq-1], key)
			require.Equal(t, want.Code, r.Code, "%v", key)
			require.Equal(t, string(want.Output), string(r.Output), "%v", key)
		}
		for key, i := range job.Instances {
			check(key, &i.Recorded)
		}
		for key, r := range job.Passes {
			check(key, r)
		}
	}
}
