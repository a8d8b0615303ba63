package postgres

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// BenchmarkLoadCommit measures a Load and a Commit for batches of messages of different jobs: the
// store's cost of a folded step. Each message ends one row, adds one, enters an instance, and
// leaves a receipt and an entry.
func BenchmarkLoadCommit(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := open(b)
			keys := make([]string, size)
			for i := range keys {
				keys[i] = fmt.Sprint(i)
			}
			ids := startJobs(b, s, keys...)
			c := openCommitter(b, s)
			rows := make(map[journal.JobID]journal.GUID, size)
			for _, id := range ids {
				rows[id] = id.Start()
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				benchmarkBatch(b, c, ids, rows, n)
				n++
			}
			b.ReportMetric(float64(n*size)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func benchmarkBatch(b *testing.B, c *committer, ids []journal.JobID, rows map[journal.JobID]journal.GUID, n int) {
	b.Helper()
	key := collation.InstanceKey{Activity: "work", DAD: collation.RootDAD.WithIndex(n)}
	wants := make([]store.Want, len(ids))
	for i, id := range ids {
		wants[i] = store.Want{
			Job: id, Instances: []collation.InstanceKey{key}, Receipt: rows[id], Row: rows[id],
			Results: []collation.InstanceKey{{Activity: "start", DAD: collation.RootDAD}},
		}
	}
	l, err := c.Load(b.Context(), wants, false)
	require.NoError(b, err)
	plans := make([]store.Chained, 0, len(ids))
	for _, id := range ids {
		st := l.States[id]
		p := plan(st)
		g := collation.Leg1GUID(rows[id], "work", key.DAD)
		p.Ledgers = []collation.LedgerWrite{{Key: key, New: true, After: 1_100_000_000_000}}
		p.Receipt = &collation.ReceiptWrite{GUID: g, New: true, After: 11_000_000_000, Verdict: journal.VerdictHandled, Seq: p.Entry.Seq}
		p.Insert = []collation.Row{{
			GUID: g, Job: id, Kind: journal.MessageRequest, Activity: "work", DAD: key.DAD, Topic: "topic", Turn: 1, TurnSent: 1,
			Body: []byte(`{"amount":100,"currency":"EUR"}`), NextAt: st.Now + 30_000_000, Publication: 1, Origin: p.Entry.Seq,
		}}
		p.Delete = []journal.GUID{rows[id]}
		rows[id] = g
		plans = append(plans, chained(st, p))
	}
	require.NoError(b, c.Commit(b.Context(), plans))
}

// BenchmarkIdempotent measures calls of class Idempotent, each a start and an end, from many runs
// at once, and counts their transactions.
func BenchmarkIdempotent(b *testing.B) {
	for _, runs := range []int{1, 2, 4, 8, 16, 64} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			s := open(b)
			w := worker(b, s)
			leases := ask(b, s, runs)
			for i, l := range leases {
				require.NoError(b, idempotent(b.Context(), w, l, "first"))
				leases[i].Fence, leases[i].Fresh = 1, false
			}
			before := s.transactions(b)
			var calls atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for _, l := range leases {
				all.Go(func() {
					for n := calls.Add(1); n <= int64(b.N); n = calls.Add(1) {
						if err := idempotent(b.Context(), w, l, fmt.Sprint(n)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(s.transactions(b)-before)/float64(b.N), "transactions/call")
		})
	}
}
