package engine

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

func told(key string, n byte) collation.Signal {
	return collation.Signal{GUID: journal.GUID{9, n}, Topic: "t", Key: key, Code: collation.CodeOK, Payload: []byte(`1`)}
}

// W3: a mailbox that another transaction holds delays no other: its signals wait aside until it
// is free.
func TestW3AMailboxThatIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		holder, err := c.store.Committer(t.Context(), true)
		require.NoError(t, err)
		defer holder.Close()
		_, err = holder.Load(t.Context(), []store.Want{{Box: collation.Mailbox("test", "t", "held")}}, true)
		require.NoError(t, err)
		done := make(chan error, 2)
		for n := range byte(2) {
			go func() {
				_, err := c.Signal(t.Context(), told("held", n))
				done <- err
			}()
			synctest.Wait()
		}
		got, err := c.Signal(t.Context(), told("free", 7))
		require.NoError(t, err)
		require.Equal(t, store.SignalKept, got.State)
		require.Empty(t, done)
		require.NoError(t, holder.Rollback(t.Context()))
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		again, err := c.Signal(t.Context(), told("held", 1))
		require.NoError(t, err)
		require.True(t, again.Duplicate)
	})
}

// T11: a batch wakes a bounded number of waits. A signal that would wake more is left to the
// next batch, not refused. A single signal is always taken.
func TestT11ABatchWakesSoMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{})
		box := &collation.Box{}
		m := &collation.Mail{
			Plan: &collation.Plan{
				RowWrites: collation.RowWrites{Insert: make([]collation.Row, 1)},
			},
			ResolvedWaits: make([]collation.BoxWait, 1),
		}
		x := &call{decides: func(b *batch) error { _, err := b.mail(box, m); return err }}
		b := (&loop{Committer: c.Committer}).batch(&store.Loaded{}, true, x, x)
		require.NoError(t, b.one(t.Context(), b.decisions[0], nil))
		require.Equal(t, []item{x}, b.became(fateCommit))
		b.wakeUps = collation.MaxWakeUps
		require.NoError(t, b.one(t.Context(), b.decisions[1], nil))
		require.Equal(t, []item{x}, b.became(fateLater))
		require.Len(t, b.plans, 1)
	})
}
