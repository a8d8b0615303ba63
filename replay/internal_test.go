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
	p := collation.Incept(collation.Inception{Space: "test", Key: "k", Generation: 1, Trigger: "t", Input: []byte(`{}`)},
		collation.Mode{})
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

// V8: what a resumed function does anew is undone anew. No build writes a journal that says
// otherwise, so the job is made by hand.
func TestCompensationsAreRegisteredAgain(t *testing.T) {
	t.Parallel()
	request := journal.GUID{1}
	violation := func(effects ...*Effect) string {
		a := newAuditor(Header{}, nil)
		a.undone[request] = 7
		for i, f := range effects {
			f.Request, f.Name, f.Class, f.Position = request, "refund", ClassUndo, "2"
			a.job.Effects[journal.Digest{byte(i)}] = f
		}
		a.undosLaw()
		if v := a.first[V8]; v != nil {
			return v.Message
		}
		return ""
	}
	require.Empty(t, violation(&Effect{State: EffectCompleted}))
	require.Empty(t, violation(&Effect{State: EffectNotDone}, &Effect{N: 1, State: EffectCompleted}))
	require.Contains(t, violation(&Effect{State: EffectStarted}), `"refund" has not`)
	require.Contains(t, violation(&Effect{State: EffectNotDone}), `"refund" was not registered for what is done anew`)
}
