package postgres

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Awaited implements store.Lists.
func (s *Store) Awaited(ctx context.Context, ids []journal.JobID) (map[journal.JobID][]store.Awaited, error) {
	if err := store.AtMost("jobs", len(ids), store.MaxPage); err != nil {
		return nil, err
	}
	all := map[journal.JobID][]store.Awaited{}
	err := s.query(ctx, "jobs_awaited", func() { clear(all) }, func(v row) error {
		id := v.job(0)
		all[id] = append(all[id], store.Awaited{
			What: awaitedOf(v.text(1), v.text(2)), Activity: v.text(3), Topic: v.text(4), Holder: v.text(5),
			Attempt: int(v.int(6)), Due: collation.Micros(v.int(7)), N: v.int(8), Lost: int(v.int(9)),
			Key: v.text(10), Class: v.text(11), Request: v.guid(12),
		})
		return nil
	}, pUUIDs(ids), pInt(store.MaxAwaited))
	return all, err
}

// awaitedOf is what a job waits for that has such a row: what job_waits says.
func awaitedOf(kind, held string) string {
	switch {
	case held == collation.HeldParked || held == collation.HeldStuck:
		return store.WaitsPerson
	case kind == string(journal.MessageRequest):
		return store.WaitsTopic
	case kind == string(journal.MessageWakeUp):
		return store.WaitsTimer
	case kind == store.WaitsSignal || kind == store.WaitsChild || kind == store.WaitsEffect:
		return kind
	}
	return ""
}

// Failing implements store.Lists.
func (s *Store) Failing(ctx context.Context, since collation.Micros) ([]store.Failing, error) {
	return readAll(ctx, s, "flows_failing", func(v row) (store.Failing, error) {
		return store.Failing{Flow: v.text(0), N: v.int(1), Last: collation.Micros(v.int(2))}, nil
	}, pInt(int64(since)), pInt(store.MaxFailed))
}
