package replay_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// BenchmarkVerify measures entries per second on one core. chain does what V1 to V3 and V16
// need (hash, decode, encode again); verify does everything; families does everything over jobs
// with all types of activities. The aims are 200 000 for chain and 50 000 for verify (2.5).
func BenchmarkVerify(b *testing.B) {
	j := replaytest.Honest(replaytest.Options{
		Activities: 400, Effects: true, Choose: rand.New(rand.NewPCG(1, 1)).IntN,
	})
	rate := func(b *testing.B, list ...*replaytest.Journal) {
		bytes, entries := 0, 0
		for _, j := range list {
			entries += len(j.Records)
			for _, r := range j.Records {
				bytes += len(r.Body)
			}
		}
		b.ReportMetric(float64(b.N)*float64(entries)/b.Elapsed().Seconds(), "entries/s")
		b.ReportMetric(float64(bytes)/float64(entries), "B/entry")
	}
	b.Run("chain", func(b *testing.B) {
		for b.Loop() {
			for _, r := range j.Records {
				journal.Next(journal.Digest{}, r.Body)
				if _, err := journal.Decode(r); err != nil {
					b.Fatal(err)
				}
			}
		}
		rate(b, j)
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if r := j.Verify(true); r.Violated() {
				b.Fatal(r.First)
			}
		}
		rate(b, j)
	})
	b.Run("families", func(b *testing.B) {
		var list []*replaytest.Journal
		for seed := range uint64(20) {
			list = append(list, replaytest.Family(replaytest.Options{
				Every: true, Activities: 40, Effects: true, Choose: rand.New(rand.NewPCG(seed, 4)).IntN,
			})...)
		}
		for b.Loop() {
			for _, j := range list {
				if r := j.Verify(true); r.Violated() {
					b.Fatal(r.First)
				}
			}
		}
		rate(b, list...)
	})
}
