package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// E14, 3.5: a built-in flow is one worker on the topic that is its version. Its input and
// output are the job's.
func TestE14BuiltinFlows(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(string) (*flow.Flow, error){
		flow.CallName: flow.Call, flow.UndoName: flow.Undo,
	} {
		for _, topic := range []string{"a", "trip.book", "a-b_c.9", strings.Repeat("t", flow.MaxTopic)} {
			f, err := build(topic)
			require.NoError(t, err)
			require.Equal(t, []string{name, topic}, []string{f.Name(), f.Version()})
			require.Len(t, f.Activities(), 2)
			require.Equal(t, topic, f.Activities()[1].Topic)
			again, err := flow.Builtin(name, topic)
			require.NoError(t, err)
			require.Equal(t, f.Digest(), again.Digest())
			stored, err := flow.FromCanonical(f.Canonical())
			require.NoError(t, err, "engines read it as any flow")
			require.Equal(t, f.Digest(), stored.Digest())
		}
		for _, topic := range []string{"", "Trip", "a b", "a..b", strings.Repeat("t", flow.MaxTopic+1)} {
			_, err := build(topic)
			require.ErrorAs(t, err, new(flow.Faults), topic)
		}
	}
	undo, err := flow.Undo("a")
	require.NoError(t, err)
	require.Equal(t, flow.MaxAttempts, undo.Activities()[1].Retry.Attempts)
	_, err = flow.Builtin("order", "a")
	require.ErrorContains(t, err, "no built-in flow")
}

// A built-in flow passes its input on whole: the input of an undo is larger than that of
// its function.
func TestE14BuiltinInputHasNoLimitOfItsOwn(t *testing.T) {
	t.Parallel()
	f, err := flow.Undo("a")
	require.NoError(t, err)
	input := `{"input":"` + strings.Repeat("x", flow.MaxMappedBytes) + `"}`
	got, err := f.Activities()[1].Input(results{"start": ran(input)})
	require.NoError(t, err)
	require.Equal(t, input, string(got))
}

// A user's flow cannot have the name of a built-in one.
func TestBuiltinNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{flow.CallName, flow.UndoName, "quipu_mine"} {
		require.True(t, flow.IsBuiltin(name))
		const want = "names that begin with quipu_ are those of built-in flows; choose another one: "
		_, err := flow.Parse("f.yaml", []byte("flow: "+name+"\nversion: a\nactivities: {start: {type: trigger}}\n"))
		require.EqualError(t, err, "f.yaml:1:7: "+want+name)
		_, err = flow.New(name).Version("a").Trigger("start").Build()
		require.EqualError(t, err, "flow: "+want+name)
	}
	require.False(t, flow.IsBuiltin("quipus"))
}
