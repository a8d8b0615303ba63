package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// W8: a process that is not sure of its session begins no effect. It ends those that it began,
// and takes no lease with that.
func TestW8WhoIsNotSureOfItsSessionBeginsNothing(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	go func() { _ = w.Run(t.Context()) }()
	row := w.begin("k")
	l, err := w.st.Lease(t.Context(), row.Job, row.GUID, row.Turn, "w", own.ID())
	require.NoError(t, err)
	begun := journal.Effect{Key: journal.Digest{1}, Name: "pay", Class: store.ClassIdempotent, N: 1}
	w.cfg.Session = living(own.ID())
	_, _, err = w.Worker().StartEffect(t.Context(), l, begun)
	require.NoError(t, err)
	w.cfg.Session = living(own.ID() + 1)
	_, _, err = w.Worker().StartEffect(t.Context(), l, journal.Effect{Key: journal.Digest{2}, Name: "more", Class: store.ClassIdempotent, N: 1})
	require.ErrorIs(t, err, store.ErrStale)
	end, err := w.Worker().FinishEffect(t.Context(), l, begun, false)
	require.NoError(t, err)
	require.Equal(t, store.EffectCompleted, end.State)
}

// W8: a process takes something with a commit only while its session lasts.
func TestW8NothingIsTakenForASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	row := w.begin("k")
	slots := &slots{}
	w.cfg.Local, w.cfg.Session = slots, living(own.ID())
	require.NoError(t, own.End(t.Context()))
	_, err = w.transact(t.Context(), work{items: []*item{response(&row)}})
	var lost *store.LostError
	require.ErrorAs(t, err, &lost)
	require.True(t, lost.Session)
	require.Zero(t, slots.taken)
}
