package replay_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// decided is t → w, which goes to a list of two or to other: 1 created, 2 t, 3 and 4 w, 5 the
// Leg1 of many, 6 and 7 its elements, the last of which closes.
func decided(mode collation.Mode) *replaytest.Journal {
	f, err := flow.New("decided").Version("1").Trigger("t").
		Worker("w", "work.w", flow.Input(map[string]any{"n": "${ t.output.n }"})).
		Worker("many", "work.many", flow.Each("${ w.output }"), flow.Input("${ item }")).
		Worker("other", "work.other").
		Transition("t", "w").
		Transition("w", "many", flow.When("size(w.output) > 1")).Transition("w", "other", flow.When("size(w.output) < 2")).
		Output(map[string]any{"got": "${ many.output }"}).Build()
	if err != nil {
		panic(err)
	}
	return replaytest.Honest(replaytest.Options{Flow: f, Mode: mode, Respond: func(activity string, _ int) *journal.Response {
		out := `[7,8]`
		if activity == "many" {
			out = `1`
		}
		return &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(out)}
	}})
}

// givenLies are about what the flow's definition gives. Nothing else finds them: hashes, digits
// and ids fit.
var givenLies = map[string]struct {
	seq    int64
	words  string
	change func(main func(int) *journal.Entry)
}{
	"the input of the job": {3, "the input of w ,0,0 has the sum", func(main func(int) *journal.Entry) { main(1).Input = []byte(`{"n":2}`) }},
	"the input of a request": {3, "the input of w ,0,0 has the sum", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Input = journal.Sum{1}
	}},
	"a response that takes the other way": {4, "behind w ,0,0 follows many ,0,0,0, the flow gives other ,0,0,0", func(main func(int) *journal.Entry) {
		main(4).Response.Output = []byte(`[7]`)
	}},
	"the input of an element": {5, "the input of element 1 of many has the sum", func(main func(int) *journal.Entry) {
		main(5).Elements.Inputs = journal.Sums{}.Append(main(5).Elements.Inputs.At(0)).Append(journal.Sum{1})
	}},
	"a list of other elements": {5, "the input of element 0 of many has the sum", func(main func(int) *journal.Entry) {
		main(4).Response.Output = []byte(`[6,8]`)
	}},
	"a longer list": {5, "many has 2 elements, 2 at once; the flow gives 3, 3 at once", func(main func(int) *journal.Entry) {
		main(4).Response.Output = []byte(`[7,8,9]`)
	}},
	"the output of the job": {7, "the job's output is not what the flow gives", func(main func(int) *journal.Entry) {
		main(7).Close.Output = []byte(`{"got":[1,2]}`)
	}},
}

// V17: what the flow gives on the journal is proved from the entries and the definition, also in
// an export.
func TestS10LiesAboutWhatTheFlowGives(t *testing.T) {
	t.Parallel()
	requireClean(t, decided(collation.Mode{}), true)
	for name, c := range givenLies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := lied(decided(collation.Mode{}), c.change)
			requireOnly(t, j.Verify(false), replay.V17, c.seq, c.words)
			j.Beside.Definition = nil
			require.Nil(t, j.Verify(false).First, "nothing else finds it")
		})
	}
}

func lied(j *replaytest.Journal, change func(main func(int) *journal.Entry)) *replaytest.Journal {
	return j.Clone().Lie(func(entries []*journal.Entry) []*journal.Entry {
		change(func(seq int) *journal.Entry { return entries[seq-1] })
		return entries
	}).Clone()
}

// V17: what another build wrote may have been evaluated otherwise. It is not proved, with both
// builds named.
func TestS10AnotherBuildIsNamed(t *testing.T) {
	t.Parallel()
	honest := decided(collation.Mode{Writer: "w", Build: "old"}).Clone()
	honest.Beside.Flows = replay.NewFlows("new")
	require.Equal(t, replay.Proved, honest.Verify(false).Result(replay.V17).Status)
	j := lied(honest, givenLies["the input of a request"].change)
	r := j.Verify(false)
	require.Nil(t, r.First)
	require.Equal(t, replay.NotProved, r.Result(replay.V17).Status)
	require.Contains(t, r.Result(replay.V17).Note, "entry 3: the input of w ,0,0")
	require.Contains(t, r.Result(replay.V17).Note, "build old wrote the entry, this is build new")
	j.Beside.Flows = replay.NewFlows("old")
	require.True(t, j.Verify(false).Violated())
}

// V17: an expression that sees an output beyond the bound is not proved.
func TestS10AnOutputThatIsNotKept(t *testing.T) {
	t.Parallel()
	j := kept().Clone()
	j.Beside.Payloads[sha256.Sum256(big)] = replay.Payload{Sum: sha256.Sum256(big)}
	r := j.Verify(true)
	require.Nil(t, r.First)
	require.Equal(t, replay.Proved, r.Result(replay.V18).Status)
	require.Equal(t, replay.NotProved, r.Result(replay.V17).Status)
	require.Contains(t, r.Result(replay.V17).Note, "an output that its expressions see is not in this input")
}

// V17: a definition that this build does not compile, or that is not the job's, proves nothing.
func TestS10ADefinitionThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	j := kept().Clone()
	j.Beside.Definition = []byte(`{}`)
	require.Contains(t, j.Verify(false).Result(replay.V17).Note, "is not that of the job (V19)")
	sum := journal.Digest(sha256.Sum256([]byte(`{}`)))
	j = j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[0].Flow.Digest = sum
		return entries
	})
	j.Header.Flow = sum
	require.Contains(t, j.Verify(false).Result(replay.V17).Note, "this build does not compile the flow's definition")
}
