package inspect_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Whatever happens to a job of any activities, in any order and mode: every input that
// was sent is found again, every end is told once, and entries that are left out, perhaps
// forged ones, are only missing.
func TestEveryInputIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]collation.Mode{"fold": {Fold: true}, "apart": {}, "stepwise": {Stepwise: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inputs := 0
			rapid.Check(t, func(t *rapid.T) {
				o := replaytest.Drawn(t, mode)
				flows := map[journal.Digest]*flow.Flow{}
				for _, f := range append(o.Others, o.Flow) {
					flows[journal.Digest(f.Digest())] = f
				}
				for _, j := range replaytest.Family(o) {
					entries, f := j.Entries(), flows[j.Header.Flow]
					whole := inspect.Tell(f, nil, entries)
					ends := 0
					for i := range whole {
						if v := whole[i].Input; v != nil && f != nil { // nil: the built-in flow of compensations
							inputs++
							require.Empty(t, v.Missing, "%s of %s: %s", whole[i].Text, j.Header.Key, whole[i].Activity)
						}
						if whole[i].Kind == view.KindClosed {
							ends++
						}
					}
					require.LessOrEqual(t, ends, 1)
					at := rapid.IntRange(0, len(entries)-1).Draw(t, "left out")
					inspect.Tell(f, nil, slices.Delete(slices.Clone(entries), at, at+1))
				}
			})
			require.Positive(t, inputs)
			t.Logf("%d inputs were found again", inputs)
		})
	}
}
