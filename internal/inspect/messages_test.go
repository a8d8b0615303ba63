package inspect

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// The messages of a job are as the entries say, at every entry: each has the ledger that its last
// entry left, a cause that was named before it, and no fate that lies behind the entry.
func TestMessagesAtEveryEntry(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for _, mode := range []collation.Mode{{}, {Fold: true}, {Stepwise: true}} {
			t.Run(fmt.Sprintf("%d fold %t stepwise %t", seed, mode.Fold, mode.Stepwise), func(t *testing.T) {
				t.Parallel()
				all := recorded(t, replaytest.Honest(replaytest.Options{
					Mode: mode, Choose: rand.New(rand.NewPCG(seed, 1)).IntN, Every: true, Activities: 12, Trouble: true,
					Functions: true, Steps: 300,
				}))
				ledgers := map[journal.GUID]journal.Ledger{}
				for n, e := range all {
					if !e.Chain.IsZero() {
						break
					}
					if handles(e.Kind) && (e.Receipts() || e.Kind == journal.KindCreated) {
						ledgers[e.GUID] = e.Receipt
					}
					if n%7 != 0 && n != len(all)-1 { // each costs the whole fold
						continue
					}
					agrees(t, messagesAt(t, all, e.Seq), ledgers, e.Seq)
				}
			})
		}
	}
}

func agrees(t *testing.T, list []view.Message, ledgers map[journal.GUID]journal.Ledger, at int64) {
	t.Helper()
	known := map[journal.GUID]bool{}
	for i := range list {
		m := &list[i]
		require.NotEmpty(t, m.Kind, m.GUID)
		if want, has := ledgers[m.GUID]; has {
			require.Equal(t, want, *m.Ledger, "%s of %s at entry %d", m.Kind, m.Activity, at)
		} else {
			require.Nil(t, m.Ledger, "%s of %s at entry %d", m.Kind, m.Activity, at)
		}
		require.False(t, known[m.GUID], "one line for each message")
		known[m.GUID] = true
		require.LessOrEqual(t, max(m.Since, m.Accepted, m.Last), at)
		switch m.Verdict {
		case view.Handled, view.Stale:
			require.Positive(t, m.Accepted)
		case view.Answered:
			require.NotEmpty(t, m.Causes)
			fallthrough
		default:
			require.Zero(t, m.Accepted)
		}
		if !m.CausedBy.IsZero() {
			require.True(t, known[m.CausedBy], "%s of %s at entry %d: its cause comes before it", m.Kind, m.Activity, at)
		}
	}
	for guid := range ledgers {
		require.True(t, known[guid])
	}
	for i := range list {
		for _, guid := range list[i].Causes {
			require.True(t, known[guid])
		}
	}
}

// recorded are the entries of a journal, the main chain first.
func recorded(t *testing.T, j *replaytest.Journal) (all []*journal.Entry) {
	t.Helper()
	for r, err := range j.All() {
		require.NoError(t, err)
		r.Job = j.Header.Job
		e, err := journal.Decode(r)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// messagesAt are the messages after an entry of the main chain.
func messagesAt(t *testing.T, all []*journal.Entry, at int64) []view.Message {
	t.Helper()
	s := newState(all[0].Job)
	m := newMessages(s)
	for _, e := range all {
		if !e.Chain.IsZero() || e.Seq > at {
			break
		}
		require.NoError(t, s.apply(e))
		m.add(e)
	}
	return m.all(nil)
}
