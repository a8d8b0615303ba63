package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// TestAuthorIsSaidOnce: an entry names its writer and build, unless a plan of the same process and
// build was the last one applied to the state (W12).
func TestAuthorIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, err := flow.New("f").Version("1").Trigger("t").Worker("w", "work").Transition("t", "w").Build()
	require.NoError(t, err)
	mode := collation.Mode{Fold: true, Writer: "a", Build: "1"}
	born := func() *collation.State {
		p := collation.Incept(collation.Inception{
			Space: "s", Key: "k", Generation: 1, Trigger: "t", Input: []byte(`{}`), Now: 1,
			Flow: journal.FlowRef{Name: "f", Version: "1", Digest: journal.Digest(f.Digest())},
		}, mode)
		require.Equal(t, "a", p.Entry.Writer)
		require.Equal(t, "1", p.Entry.Build)
		return collation.Born(p, f)
	}
	for _, c := range []struct {
		name          string
		writer, build string
		loaded, says  bool
	}{
		{"the same", "a", "1", false, false},
		{"another process", "b", "1", false, true},
		{"another build", "a", "2", false, true},
		{"a state that was loaded", "a", "1", true, true},
	} {
		s := born()
		if c.loaded {
			s.Author = collation.Author{}
		}
		p := collation.FoldStart(s, collation.Mode{Fold: true, Writer: c.writer, Build: c.build})
		require.NotNil(t, p)
		require.Equal(t, c.says, p.Entry.Writer == c.writer && p.Entry.Build == c.build, c.name)
		require.Equal(t, c.says, p.Entry.Writer != "" || p.Entry.Build != "", c.name)
	}
}
