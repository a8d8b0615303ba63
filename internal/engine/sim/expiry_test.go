package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// lives of keys: ended jobs are removed and their keys used again, while messages of the first
// jobs are still on their way (J7, P29).
type keyLives struct {
	generations map[string]int64               // the latest known generation, by key
	owners      map[journal.GUID]journal.JobID // of receipts and rows
}

func (k *keyLives) init() {
	k.generations, k.owners = map[string]int64{}, map[journal.GUID]journal.JobID{}
}

// Expire is called with the rights of retention.
func (s *port) Expire(ctx context.Context, limit int) (bool, error) {
	return through(ctx, s.p, kindWrite, "expire", func() (bool, error) {
		s.p.world.lastWords()
		return s.Store.Expire(ctx, limit)
	})
}

// retain removes jobs whose time has passed, a part at a time.
func (w *world) retain() {
	dice := rand.New(rand.NewPCG(w.seed, 5)) //nolint:gosec // it must be repeatable
	st := &port{Store: w.store, p: w.processes[0]}
	for w.pause(time.Duration(300+dice.IntN(2000)) * time.Millisecond) {
		_, _ = st.Expire(context.Background(), []int{1, 4, 1000}[dice.IntN(3)]) // the next one removes what is left
	}
}

// lastWords verifies the jobs that are about to be removed, since nobody can later.
func (w *world) lastWords() {
	now := collation.Micros(time.Now().Add(w.weather.skew).UnixMicro())
	for _, v := range w.views() {
		if !v.State.Closed() || v.State == journal.JobExpired || v.ExpiresAt == collation.Never || v.ExpiresAt > now {
			continue // a tombstone keeps its time until its job's rows are gone
		}
		w.audit(v.ID, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
			w.received(s)
			w.transferred(s)
			_, err := w.reported(s, entries)
			return err
		})
	}
}

// restarter uses a key again once its first job is removed.
func (w *world) restarter(key string) {
	until := time.Now().Add(w.weather.calmAfter + patience/2)
	for time.Now().Before(until) && w.pause(200*time.Millisecond) {
		w.guard.mu.Lock()
		_, began := w.acked[key]
		w.guard.mu.Unlock()
		if _, err := w.store.FindJob(context.Background(), key); began && errors.Is(err, store.ErrNotFound) {
			w.starter(key, 0, 0, true, []byte(`{"list":[1,2],"v":4}`))
			return
		}
	}
}

// reborn compares an acknowledged job with the one that had its key before: there is one at a
// time, and each has its own id. The caller has the lock.
func (w *world) reborn(key string, id journal.JobID) (wrong string) {
	v, err := w.store.Job(context.Background(), id)
	if err != nil {
		return "" // removed and replaced meanwhile
	}
	was, known := w.acked[key]
	before := w.generations[key]
	w.generations[key] = v.Generation
	switch {
	case !known || v.Generation == before && was == id:
		return ""
	case v.Generation <= before:
		return fmt.Sprintf("I9: %s was acknowledged as job %s of generation %d, and as job %s of generation %d", key, was, before, id, v.Generation)
	case was == id:
		return fmt.Sprintf("P29: generations %d and %d of %s have the same id, %s", before, v.Generation, key, id)
	}
	return ""
}

// own says that no id belongs to two jobs (C8).
func (w *world) own(s *store.Stored) {
	if !w.plan.content.expire {
		return
	}
	for g := range s.Receipts {
		w.owned(g, s)
	}
	for g, r := range s.Rows {
		if r.Kind != journal.MessageInterrupt {
			w.owned(g, s)
		}
	}
}

func (w *world) owned(g journal.GUID, s *store.Stored) {
	if owner := w.owners[g]; !owner.IsZero() && owner != s.Job.ID {
		w.wrong("P29: message %s is one of job %s and one of job %s, of generation %d of %s", g, owner, s.Job.ID, s.Job.Generation, s.Job.Key)
	}
	w.owners[g] = s.Job.ID
}
