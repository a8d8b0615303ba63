package inspect

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// The messages of a job are as the entries say, at every entry: each has the ledger that its last
// entry left, a cause that was named before it, and no fate that lies behind the entry.
func TestMessagesAtEveryEntry(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for _, mode := range []collation.Mode{{}, {Fold: true}, {Stepwise: true}} {
			t.Run(fmt.Sprintf("%d fold %t stepwise %t", seed, mode.Fold, mode.Stepwise), func(t *testing.T) {
				t.Parallel()
				v, all := recorded(t, replaytest.Honest(replaytest.Options{
					Mode: mode, Choose: rand.New(rand.NewPCG(seed, 1)).IntN, Every: true, Activities: 12, Trouble: true,
					Functions: true, Steps: 300,
				}))
				ledgers := map[string]string{}
				for n, e := range all {
					if !e.Chain.IsZero() {
						break
					}
					if handles(e.Kind) && (e.Receipts() || e.Kind == journal.KindCreated) {
						ledgers[e.GUID.String()] = e.Receipt.String()
					}
					if n%7 != 0 && n != len(all)-1 { // each costs the whole fold
						continue
					}
					list, err := foldMessages(v, all, e.Seq)
					require.NoError(t, err)
					agrees(t, list, ledgers, e.Seq)
				}
			})
		}
	}
}

func agrees(t *testing.T, list []Message, ledgers map[string]string, at int64) {
	t.Helper()
	known := map[string]bool{}
	for i := range list {
		m := &list[i]
		require.NotEmpty(t, m.Kind, m.GUID)
		require.Equal(t, ledgers[m.GUID], m.Ledger, "%s of %s at entry %d", m.Kind, m.Activity, at)
		require.False(t, known[m.GUID], "one line for each message")
		known[m.GUID] = true
		require.LessOrEqual(t, max(m.Sent, m.Accepted, m.Last), at)
		switch m.Verdict {
		case string(journal.VerdictHandled), string(journal.VerdictStale):
			require.Positive(t, m.Accepted)
		case verdictAnswered:
			require.NotEmpty(t, m.Causes)
			fallthrough
		default:
			require.Zero(t, m.Accepted)
		}
		if m.CausedBy != "" {
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

// recorded is the job of a journal with its entries, the main chain first.
func recorded(t *testing.T, j *replaytest.Journal) (*store.JobView, []*journal.Entry) {
	t.Helper()
	var all []*journal.Entry
	for r, err := range j.All() {
		require.NoError(t, err)
		r.Job = j.Header.Job
		e, err := journal.Decode(r)
		require.NoError(t, err)
		all = append(all, e)
	}
	v := &store.JobView{}
	v.ID, v.Space, v.Key, v.Generation = j.Header.Job, j.Header.Space, j.Header.Key, j.Header.Generation
	return v, all
}
