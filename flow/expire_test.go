package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// W11: what a definition says about how long its jobs are kept stands against the
// space's default, and the default changes nothing of the definition.
func TestExpire(t *testing.T) {
	t.Parallel()
	const rest = "flow: f\nversion: \"1\"\nactivities: {start: {type: trigger}}\n"
	for text, x := range map[string]struct{ said, kept time.Duration }{
		"":                    {0, time.Hour},
		"expire: never\n":     {0, 0},
		"expire: 1m\n":        {time.Minute, time.Minute},
		"expire: \"never\"\n": {0, 0},
	} {
		f, err := flow.Parse("f.yaml", []byte(text+rest))
		require.NoError(t, err, text)
		require.Equal(t, x.said, f.Expire(), text)
		require.Same(t, f, f.KeptFor(0), text)
		kept := f.KeptFor(time.Hour)
		require.Equal(t, x.kept, kept.Expire(), text)
		require.Equal(t, f.Canonical(), kept.Canonical(), text)
		require.Equal(t, f.Digest(), kept.Digest(), text)
		again, err := flow.FromCanonical(f.Canonical())
		require.NoError(t, err, text)
		require.Equal(t, x.kept, again.KeptFor(time.Hour).Expire(), text)
	}
	_, err := flow.Parse("f.yaml", []byte("expire: Never\n"+rest))
	require.ErrorContains(t, err, "duration")
	built, err := flow.New("f").Version("1").Expire(flow.Never).Trigger("start").Build()
	require.NoError(t, err)
	require.Zero(t, built.KeptFor(time.Hour).Expire())
}
