package engine

import (
	"context"
	"fmt"
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

// W3: an outcome that a run sends and does not wait for is answered once, also while the
// committer ends.
func TestW3EverySentOutcomeIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = w.Run(ctx) }()
	row := w.begin("k")
	l, err := w.st.Lease(t.Context(), row.Job, row.GUID, row.Turn, "w", own.ID())
	require.NoError(t, err)
	w.cfg.Session = living(own.ID())
	const outcomes = 300
	answers := make(chan error, 2*outcomes)
	for i := range outcomes {
		e := journal.Effect{Key: journal.Digest{byte(i), byte(i >> 8), 1}, Name: fmt.Sprint("now", i), Class: store.ClassPure}
		w.Worker().SendOutcome(l, e, func(_ store.EffectRow, err error) { answers <- err })
		l.After = e.Key
		if i == outcomes/2 {
			require.NoError(t, <-answers)
			stop()
		}
	}
	for range outcomes - 1 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, ErrClosed)
		}
	}
	<-w.gone
	w.Worker().SendOutcome(l, journal.Effect{Name: "late", Class: store.ClassPure}, func(_ store.EffectRow, err error) { answers <- err })
	require.ErrorIs(t, <-answers, ErrClosed)
	require.Empty(t, answers)
	rows, err := w.st.Effects(t.Context(), row.Job, row.GUID)
	require.NoError(t, err)
	for i := range rows {
		require.Equal(t, fmt.Sprint("now", i), rows[i].Name, "what is recorded is what came first")
	}
}
