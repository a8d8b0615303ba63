package replay_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

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

// TestTimeTravel shows the state of journals at some of their entries (J10): what is open and why,
// digits, results, pauses, effects. Each command names a journal and entries.
func TestTimeTravel(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/travel.txt", func(t *testing.T, d *datadriven.TestData) string {
		j := made(d.CmdArgs[0].Key)
		var b strings.Builder
		for _, arg := range d.CmdArgs[1:] {
			at, err := strconv.Atoi(arg.Key)
			require.NoError(t, err)
			job := apply(t, j, at, replay.KeepOutputs)
			require.Len(t, job.Obligations, int(job.Semaphore))
			if j.Records[at-1].Chain.IsZero() {
				require.Equal(t, j.Records[at-1].Hash, job.At.Hash)
			}
			for g, c := range job.Children {
				require.Equal(t, c.Job.Start(), g)
				if i := job.Instances[collation.InstanceKey{Activity: c.Activity, DAD: c.DAD}]; c.Turn > 0 {
					require.Equal(t, collation.ChildID(i.Leg1, i.Turn), c.Job)
				} else {
					require.Equal(t, job.Pauses[g].Request, c.Request)
				}
			}
			fmt.Fprintf(&b, "%d: %s, %d open, %d receipts, %d signals\n%s", at, job.State, job.Semaphore, len(job.Receipts), len(job.Signals), shown(job))
		}
		return b.String()
	})
}

// shown lists the parts of a state, each on a line.
func shown(job *replay.Job) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf("   "+format, args...)) }
	result := func(r *replay.Recorded) string {
		if r.ResultSeq == 0 {
			return ""
		}
		return strings.TrimSuffix(fmt.Sprintf(", code %d of entry %d, %s", r.Code, r.ResultSeq, r.Output), ", ")
	}
	if p := job.Parent; p != nil {
		add("parent %s, awaited %t", p.Activity, p.Awaited)
	}
	if job.ClosedAt > 0 {
		add("closed by entry %d, tasks %t", job.ClosedAt, job.TasksAt > 0)
	}
	for _, o := range job.Open() {
		add("at %s %s: %s", o.Activity, o.DAD, says(o))
	}
	for key, i := range job.Instances {
		text := fmt.Sprintf("instance %s %s %s%s", key.Activity, key.DAD, i.Ledger, result(&i.Recorded))
		if i.Count > 0 {
			text += fmt.Sprintf(", %d of %d elements open", i.Open, i.Count)
		}
		if i.Turn > 0 {
			text += fmt.Sprintf(", turn %d, attempt %d", i.Turn, i.Attempt)
		}
		if i.Pivot {
			text += ", pivot"
		}
		add("%s", text)
	}
	for key, r := range job.Passes {
		add("pass %s %s%s", key.Activity, key.DAD, result(r))
	}
	for _, p := range job.Pauses {
		add("pause %s: named %t, taken %t, came %t, by timeout %t", p.Name, p.Named, p.Taken > 0, p.Came, p.ByTimeout)
	}
	for _, c := range job.Children {
		add("child of turn %d", c.Turn)
	}
	for request, seq := range job.Undos {
		add("compensations of a request are ordered by entry %d, the request stands %t", seq, job.Rows[request] != nil)
	}
	for _, f := range job.Effects {
		add("effect %s, n %d, at %q, %s, voided %t", f.Name, f.N, f.Position, f.State, f.Voided)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// J10: effects are cached under their keys, as they are stored. Without KeepOutputs no output is
// kept.
func TestEffectsAreRebuilt(t *testing.T) {
	t.Parallel()
	j := made("line")
	job := apply(t, j, len(j.Records))
	require.Len(t, job.Chains, 3)
	require.Len(t, job.Effects, len(j.Stored.Effects))
	for _, s := range j.Stored.Effects {
		require.Equal(t, []any{s.State, s.Result}, []any{job.Effects[s.Key].State, job.Effects[s.Key].Result})
	}
	for _, i := range job.Instances {
		require.Nil(t, i.Output)
	}
}

// Every result points to the entry that holds it (J7), as the store reads it.
func TestResultsAreThoseOfTheirEntries(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields("plain folded stepped twice listed raced slept ticked awaited joined halted failing") {
		j := made(name)
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
