package replay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// V14: no journal can make an honest fold differ from itself, so this test makes the second
// replay differ.
func TestReplayThatDiffersIsViolated(t *testing.T) {
	t.Parallel()
	p := collation.Incept(collation.Inception{Space: "test", Key: "k", Generation: 1, Trigger: "t", Input: []byte(`{}`)}, collation.Mode{})
	body := journal.Encode(p.Entry)
	genesis := journal.Genesis("test", p.Job, 1, journal.MainChain)
	rec := journal.Record{Job: p.Job, Seq: 1, Body: body, Hash: journal.Next(genesis, body)}
	h := Header{Space: "test", Job: p.Job, Key: "k", Generation: 1, Head: journal.Head{Seq: 1, Hash: rec.Hash}}

	honest := newAuditor(h, nil)
	honest.entry(rec)
	require.Nil(t, honest.finish().First)

	a := newAuditor(h, nil)
	a.entry(rec)
	a.twin.Semaphore++
	r := a.finish()
	require.Equal(t, Violated, r.Result(V14).Status)
	require.Contains(t, r.Result(V14).Violation.Message, "two replays gave the digests")
	for _, c := range r.Checks {
		if c.Check != V14 {
			require.NotEqual(t, Violated, c.Status)
		}
	}
}
