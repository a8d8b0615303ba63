package replay_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// V17: what another build wrote may have been evaluated otherwise. It is not proved, with both
// builds named.
func TestS10AnotherBuildIsNamed(t *testing.T) {
	t.Parallel()
	o, _ := options(recipes()["decided"])
	o.Mode = collation.Mode{Writer: "w", Build: "old"}
	honest := replaytest.Honest(o).Clone()
	honest.Attachments.Flows = replay.NewFlows("new")
	require.Equal(t, replay.Proved, honest.Verify(false).Result(replay.V17).Status)
	j := honest.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[2].Dispatched[0].Input = journal.Sum{1}
		return entries
	})
	r := j.Verify(false)
	require.Nil(t, r.First)
	require.Equal(t, replay.NotProved, r.Result(replay.V17).Status)
	require.Contains(t, r.Result(replay.V17).Note, "entry 3: the input of w ,0,0")
	require.Contains(t, r.Result(replay.V17).Note, "build old wrote the entry, this is build new")
	j.Attachments.Flows = replay.NewFlows("old")
	require.True(t, j.Verify(false).Violated())
}

// V17: an expression that sees an output beyond the bound is not proved.
func TestS10AnOutputThatIsNotKept(t *testing.T) {
	t.Parallel()
	j := kept().Clone()
	j.Attachments.Payloads[sha256.Sum256(big)] = replay.Payload{Sum: sha256.Sum256(big)}
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
	j.Attachments.Definition = []byte(`{}`)
	require.Contains(t, j.Verify(false).Result(replay.V17).Note, "is not that of the job (V19)")
	sum := journal.Digest(sha256.Sum256([]byte(`{}`)))
	j = j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[0].Flow.Digest = sum
		return entries
	})
	j.Header.Flow = sum
	require.Contains(t, j.Verify(false).Result(replay.V17).Note, "this build does not compile the flow's definition")
}
