package effect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
)

// Golden vectors (E1), computed by an independent implementation: a key that changes
// between builds would run effects twice.
func TestE1KeyGolden(t *testing.T) {
	t.Parallel()
	var job journal.JobID
	for i := range job {
		job[i] = byte(i)
	}
	id := Identity{Space: "shop", Job: job, Generation: 1, Version: "1", Activity: "charge", DAD: ",0,0"}
	other := id
	other.Generation, other.Element = 2, 7
	for name, c := range map[string]struct {
		id   Identity
		call *Call
		n    int
		want string
	}{
		"plain":            {id, callOf("charge"), 0, "38a398e4f2260b5e0d21837139e7e5a166b482e39213de079c707819d0c6e755"},
		"after not done":   {id, callOf("charge"), 1, "49a51f2f6f03e1cfcef30779f50f7fc38ff262491103346961cd1290ac5fec1c"},
		"explicit":         {id, callOf("charge", effects.WithKey("line-3")), 0, "da4c7d71ebe6fe4dc3a3c67df958b7be30c791d945d2dfdb8792da8357c7e5ae"},
		"explicit, args":   {id, callOf("charge", effects.WithKey("line-3"), effects.Args(1)), 0, "da4c7d71ebe6fe4dc3a3c67df958b7be30c791d945d2dfdb8792da8357c7e5ae"},
		"args":             {id, callOf("charge", effects.Args(map[string]any{"a": 1.0})), 0, "9221e6c137b5a0dc7e1b6d3f1df5d12564e0806790a1c31748d03d2d0afa3b14"},
		"another place":    {other, callOf("charge"), 0, "f587d317bd196f1e8b91118238cbd306a5ee1e92269ee207a39aafde2b4b0ac6"},
		"class is no part": {id, callOf("charge", effects.Idempotent), 0, "38a398e4f2260b5e0d21837139e7e5a166b482e39213de079c707819d0c6e755"},
		"once is no part":  {id, callOf("charge", effects.Once()), 0, "38a398e4f2260b5e0d21837139e7e5a166b482e39213de079c707819d0c6e755"},
		"args of one value": {id, callOf("charge", effects.Args(struct {
			A int `json:"a"`
		}{1})), 0, "9221e6c137b5a0dc7e1b6d3f1df5d12564e0806790a1c31748d03d2d0afa3b14"},
	} {
		require.NoError(t, c.call.err, name)
		require.Equal(t, c.want, c.id.key(c.call, c.n).String(), name)
	}
}
