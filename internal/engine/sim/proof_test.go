package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// The checks of the worlds can fail. What mutants show is not repeated here.

// P29: no id belongs to two jobs, and a key is used outside by one request only.
func TestP29SaysWhatIsShared(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.keyLives.init()
	w.receiver.init()
	stored := func(generation int64) *store.Stored {
		return &store.Stored{Job: collation.Job{
			ID: collation.NewJobID(space, "k", generation), Key: "k", Generation: generation,
		}}
	}
	w.owned(journal.GUID{1}, stored(1))
	w.owned(journal.GUID{1}, stored(1))
	w.owned(journal.GUID{2}, stored(2))
	require.Empty(t, w.wrongs)
	w.owned(journal.GUID{1}, stored(2))
	require.Len(t, w.wrongs, 1)

	e := &effect{Name: "e", Class: effects.Idempotent}
	for range 2 {
		_, wrong := w.receiver.receive("key", "of the first", e)
		require.Empty(t, wrong)
	}
	_, wrong := w.receiver.receive("key", "of the second", e)
	require.NotEmpty(t, wrong)
}

// P24, P25: the follow-ups of a body are those of its committed run.
func TestP24SaysWhatFollows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, committed int
		began, sent  bool
		wrong        bool
	}{
		"the committed run":                    {2, 2, true, true, false},
		"a run that was not committed":         {1, 2, false, false, false},
		"a body that failed":                   {1, 0, false, false, false},
		"a job of one that was not committed":  {1, 2, true, false, true},
		"a signal of one that was not":         {1, 2, false, true, true},
		"the job of the committed is missing":  {2, 2, false, true, true},
		"its signal is missing":                {2, 2, true, false, true},
		"both of a body that failed, all same": {1, 0, true, true, true},
	} {
		require.Equal(t, c.wrong, astray(c.n, c.committed, c.began, c.sent), name)
	}
}

// A verifier that is asked while the call may still arrive does not know.
func TestVerifierTellsTheTruth(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	r.init()
	p := &process{}
	q := &effects.Question{Key: "k"}
	require.Equal(t, effects.StateNotDone, r.answer(q, 2, true).State)
	land := r.fly(p, "k", journal.GUID{7}.String())
	require.Equal(t, effects.StateUnknown, r.answer(q, 2, true).State)
	require.True(t, r.awaits(journal.GUID{7}))
	require.False(t, r.awaits(journal.GUID{8}))
	_, _ = r.receive("k", journal.GUID{7}.String(), &effect{Class: effects.Guarded})
	land()
	require.Equal(t, effects.StateDone, r.answer(q, 2, true).State)
	r.fly(p, "k", "another")
	p.dead.Store(true)
	require.Equal(t, effects.StateDone, r.answer(q, 2, true).State, "the call of a dead process does not arrive")
}
