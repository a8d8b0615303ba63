package store

import (
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Replay returns the input of replay.Verify besides the entries: the header that they must fit,
// and the tables that they are compared with.
func (s *Stored) Replay() (replay.Header, *replay.Stored) {
	j := &s.Job
	t := &replay.Stored{
		State: j.State, Semaphore: j.Semaphore, Instances: s.Instances, Open: s.Open, Rows: s.Rows, Waits: s.Waits, ResolvedWaits: s.ResolvedWaits,
		From: j.From, Next: s.Next,
		Receipts: make(map[journal.GUID]replay.StoredReceipt, len(s.Receipts)),
	}
	for g, r := range s.Receipts {
		t.Receipts[g] = replay.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
	}
	for i := range s.Effects {
		f := &s.Effects[i]
		t.Effects = append(t.Effects, replay.StoredEffect{
			Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, State: replay.EffectState(f.State),
			Result: replay.ResultDigest(f.Result, f.Error), Position: f.Position,
		})
	}
	h := replay.Header{Space: j.Space, Job: j.ID, Key: j.Key, Generation: j.Generation, Head: j.Head, Flow: s.FlowDigest}
	return h, t
}
