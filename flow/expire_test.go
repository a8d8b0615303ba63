package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// W11: a definition's `expire` overrides the space's default, and the default does not
// change the definition.
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
	built, err := flow.New("f").Version("1").Expire(flow.Never).Trigger("start").Build()
	require.NoError(t, err)
	require.Zero(t, built.KeptFor(time.Hour).Expire())
	written, err := flow.Parse("f.yaml", []byte("expire: never\n"+rest))
	require.NoError(t, err)
	require.Equal(t, written.Digest(), built.Digest())
	silent, err := flow.Parse("f.yaml", []byte(rest))
	require.NoError(t, err)
	require.Equal(t, "8fcc0c0e42af7dd2a4c3a37c2139521dbfe3bfdf5067c2bec23aebc99bf4ad5e", silent.Digest().String(), "stored flows depend on the canonical form")
	require.NotEqual(t, silent.Digest(), written.Digest())
}

// Neither does Go say never with an invalid duration. Those of files are in testdata/transcripts/faults.txt.
func TestExpireRefused(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, -2, -time.Hour, flow.MinExpire - 1, flow.MaxExpire + 1} {
		_, err := flow.New("f").Version("1").Expire(d).Trigger("start").Build()
		require.ErrorContains(t, err, "must be from", d)
	}
}
