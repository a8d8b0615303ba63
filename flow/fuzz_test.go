package flow_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// An accepted flow has a canonical form that gives the same flow; any other is refused
// with faults.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(src)
	}
	f.Add([]byte(`{"flow":"a","version":"1","activities":{"s":{"type":"trigger"}},"output":"${ 0.1 + s.output }"}`))
	f.Add([]byte("flow: a\nversion: &v '1'\nactivities: {s: {type: trigger}}\noutput: [*v, !!str 5, >-\n  ${ s.code }\n]"))
	f.Add([]byte("activities: {a: {type: cycle, to: b}, b: }"))
	f.Fuzz(func(t *testing.T, src []byte) {
		parsed, err := flow.Parse("f.yaml", src)
		if err != nil {
			var faults flow.Faults
			require.ErrorAs(t, err, &faults)
			require.NotEmpty(t, faults)
			return
		}
		stored, err := flow.FromCanonical(parsed.Canonical())
		require.NoError(t, err)
		require.Equal(t, parsed.Digest(), stored.Digest())
		require.Equal(t, namesOf(parsed), namesOf(stored))
		_, _ = stored.Output(results{})
		for _, a := range stored.Activities() {
			evaluate(t, a)
		}
	})
}

// evaluate evaluates all keys of an activity's type. A missing result is an error with
// its place, not a panic.
func evaluate(t *testing.T, a *flow.Activity) {
	var errs []error
	keep := func(_ any, err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	keep(a.Input(results{}))
	keep(a.ElementInput(results{}, []byte("{}"), 1))
	if a.HasEach {
		keep(a.Each(results{}))
	}
	if a.HasOutput() {
		keep(a.MapOutput(results{a.Name: ran(`{}`)}, nil))
	}
	switch a.Type {
	case flow.TypeAwait:
		keep(a.Child(results{}))
	case flow.TypeSignal:
		keep(a.Signal(results{}))
	case flow.TypeInterrupt:
		keep(a.Interrupt(results{}))
	case flow.TypeHook:
		if a.HasSleep {
			keep(a.Sleep(results{}))
		}
		if a.Topic != "" {
			keep(a.Key(results{}))
		}
	}
	for _, err := range errs {
		var failed *flow.EvalError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, a.Name, failed.Activity)
	}
}
