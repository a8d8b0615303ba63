package store

import (
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Verify verifies the entries of an Audit with all that is stored of the job. flows keeps
// compiled definitions for further jobs; nil: none are kept.
func (s *Stored) Verify(flows *replay.Flows, entries iter.Seq2[journal.Record, error]) (*replay.Report, error) {
	header, tables := s.Replay()
	var attachments *replay.Attachments
	if s.Attachments != nil {
		var err error
		if attachments, err = replay.ReadAttachments(s.Attachments); err != nil {
			return nil, err
		}
		attachments.Whole, attachments.Flows = true, flows
	}
	return replay.Verify(header, tables, attachments, entries)
}

// Replay returns the header that the entries must fit, and the tables that they are compared with.
func (s *Stored) Replay() (replay.Header, *replay.Stored) {
	j := &s.Job
	t := &replay.Stored{
		State: j.State, Semaphore: j.Semaphore, ClosedAt: s.ClosedAt, TasksAt: s.TasksAt, Rows: s.Rows, Waits: s.Waits,
		ResolvedWaits: s.ResolvedWaits,
		From:          j.From, Next: s.Next, Flow: j.Flow, Receipts: s.Receipts, KnownExpiredAt: s.KnownExpiredAt,
		Instances: make(map[collation.InstanceKey]collation.ActivityLedger, len(s.Instances)),
		Open:      map[collation.InstanceKey]int{},
	}
	for key, i := range s.Instances {
		if i.Ledger != 0 {
			t.Instances[key] = i.Ledger
		}
		if i.Open != 0 {
			t.Open[key] = i.Open
		}
	}
	for i := range s.Effects {
		f := &s.Effects[i]
		t.Effects = append(t.Effects, replay.StoredEffect{
			Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, State: replay.EffectState(f.State),
			Result: replay.ResultDigest(f.Result, f.Error), Position: f.Position,
		})
	}
	h := replay.Header{
		Space: j.Space, Job: j.ID, Key: j.Key, Generation: j.Generation, Head: j.Head, Flow: s.FlowDigest,
	}
	return h, t
}

// KnownExpiredAt tells from when a tombstone ends by when the job had expired: its stay may have been
// prolonged. 0 for 0.
func KnownExpiredAt(ends collation.Micros) collation.Micros {
	if ends == 0 {
		return 0
	}
	return ends - collation.Micros(TombstoneAge.Microseconds())
}
