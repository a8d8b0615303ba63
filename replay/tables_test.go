package replay_test

import (
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// edit changes one value of a map, found by a test on it.
func edit[K comparable, V any](m map[K]V, want func(K, V) bool, change func(*V)) {
	for k, v := range m {
		if want(k, v) {
			change(&v)
			m[k] = v
			return
		}
	}
	panic("nothing to edit")
}

func anyone[K comparable, V any](K, V) bool { return true }

func ofW2(k collation.InstanceKey, _ collation.ActivityLedger) bool { return k.Activity == "w2" }

// tableCases change the tables beside the entries of halfway.
var tableCases = map[string]struct {
	check  replay.Check
	seq    int64
	words  string
	change func(s *replay.Stored)
}{
	"V3 head of a chain of effects": {replay.V3, 4, "the request's row says entry 4", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.Effects.Hash[0] ^= 1 })
	}},
	"V4 a digit of a ledger": {replay.V4, 0, "positions 2–3 (Leg1 entries): 2, not 1", func(s *replay.Stored) {
		edit(s.Instances, ofW2, func(l *collation.ActivityLedger) { *l += 1_000_000_000_000 })
	}},
	"V4 a ledger deleted": {replay.V4, 0, "no ledger of w2", func(s *replay.Stored) {
		maps.DeleteFunc(s.Instances, ofW2)
	}},
	"V4 a ledger too many": {replay.V4, 0, "no entry moved it", func(s *replay.Stored) {
		s.Instances[collation.InstanceKey{Activity: "w9", DAD: ",0,0"}] = 1_000_000_000_000
	}},
	"V4 a receipt too many": {replay.V4, 0, "no entry moved it", func(s *replay.Stored) {
		s.Receipts[journal.GUID{7}] = replay.StoredReceipt{Verdict: journal.VerdictStale}
	}},
	"V4 a receipt that went": {replay.V4, 0, "ended its message and its row", func(s *replay.Stored) {
		s.Receipts[halfway().Header.Job.Start()] = replay.StoredReceipt{Ledger: 11_000_000_000, Verdict: journal.VerdictHandled}
	}},
	"V6 the semaphore": {replay.V6, 0, "the stored semaphore is 2, the entries give 1", func(s *replay.Stored) { s.Semaphore++ }},
	"V7 the state": {replay.V7, 0, "the stored state is completed, the entries give open", func(s *replay.Stored) {
		s.State = journal.JobCompleted
	}},
	"V9 a result": {replay.V9, 0, "stored result has digest", func(s *replay.Stored) {
		s.Effects = slices.Clone(s.Effects)
		s.Effects[0].Result[0] ^= 1
	}},
	"V9 a state": {replay.V9, 0, "started; the entries give", func(s *replay.Stored) {
		s.Effects = slices.Clone(s.Effects)
		s.Effects[1].State = replay.EffectStarted
	}},
	"V9 a row deleted":  {replay.V9, 0, "no row is stored of effect", func(s *replay.Stored) { s.Effects = s.Effects[1:] }},
	"V9 a row twice":    {replay.V9, 0, "two rows", func(s *replay.Stored) { s.Effects = append(s.Effects, s.Effects[0]) }},
	"V9 a row too many": {replay.V9, 0, "no entry speaks of it", func(s *replay.Stored) { s.Effects = append(s.Effects, replay.StoredEffect{Name: "x"}) }},
	"V10 a row deleted": {replay.V10, 0, "no request row", func(s *replay.Stored) { clear(s.Rows) }},
	"V10 a row too many": {replay.V10, 0, "must not stand; it was never dispatched", func(s *replay.Stored) {
		s.Rows[journal.GUID{7}] = collation.Row{Kind: journal.MessageLeg1, Activity: "w3"}
	}},
	"V10 a row's address": {replay.V10, 0, "address", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.DAD = ",0" })
	}},
	"V10 another input": {replay.V10, 0, "the stored input of row", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.Body = []byte(`{"n":2}`) })
	}},
	"V10 a row held": {replay.V10, 0, "being held", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.Held = collation.HeldStuck })
	}},
	"V12 a row's turn": {replay.V12, 0, "turn of row", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.Turn = 2 })
	}},
	"V12 a row's attempt": {replay.V12, 0, "attempt of row", func(s *replay.Stored) {
		edit(s.Rows, anyone, func(r *collation.Row) { r.Attempt = 2 })
	}},
}
