package flow_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// What is taken has a canonical form that gives the same flow; what is not is
// refused with faults.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"order.yaml", "ten_faults.yaml"} {
		src, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(src)
	}
	f.Add([]byte(`{"flow":"a","version":"1","activities":{"s":{"type":"trigger"}},"output":"${ 0.1 + s.output }"}`))
	f.Add([]byte("flow: a\nversion: &v '1'\nactivities: {s: {type: trigger}}\noutput: [*v, !!str 5, >-\n  ${ s.code }\n]"))
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
	})
}
