package replay_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// BenchmarkVerify measures entries per second on one core: chain is what V1 to
// V3 and V16 need (hash, decode, encode again), verify is everything. The aims
// are 200 000 and 50 000 (2.5).
func BenchmarkVerify(b *testing.B) {
	j := replaytest.Honest(replaytest.Options{
		Activities: 400, Effects: true, Choose: rand.New(rand.NewPCG(1, 1)).IntN,
	})
	bytes := 0
	for _, r := range j.Records {
		bytes += len(r.Body)
	}
	rate := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*float64(len(j.Records))/b.Elapsed().Seconds(), "entries/s")
		b.ReportMetric(float64(bytes)/float64(len(j.Records)), "B/entry")
	}
	b.Run("chain", func(b *testing.B) {
		for b.Loop() {
			for _, r := range j.Records {
				journal.Next(journal.Digest{}, r.Body)
				if _, err := journal.Decode(r.Body); err != nil {
					b.Fatal(err)
				}
			}
		}
		rate(b)
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if r := j.Verify(true); r.Violated() {
				b.Fatal(r.First)
			}
		}
		rate(b)
	})
}
