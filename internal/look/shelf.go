package look

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of what is held of journals in memory.
const (
	// maxShelved bounds the entries of all jobs that a Shelf keeps. A decoded entry with its event
	// takes about 2 kB, and what it says.
	maxShelved = 30_000
	// maxShelvedBytes bounds what they say, bytes of entries and of outputs that are stored beside them.
	maxShelvedBytes = 64 << 20
	// maxRead bounds the entries of one job, bytes: a longer journal is not read.
	maxRead = 64 << 20
	// maxAttachments bounds the outputs of one job that are stored beside its entries, bytes: others are
	// said to be missing.
	maxAttachments = 32 << 20
)

// Shelf keeps the journals that were read last, so that who looks at a long one again does not
// read, decode and tell it again. The journal is insert-only: it is the same as long as its heads
// are, that of the main chain and those of the chains of effects. A proof never comes from here.
// The zero value is ready.
type Shelf struct {
	mu   sync.Mutex
	kept []*kept // the last used first
}

// kept is a journal as it was read. Nothing in it changes, but that its events are told when they
// are first wanted.
type kept struct {
	mark    [sha256.Size]byte
	entries []*journal.Entry // those of the main chain, then those of the effect chains
	hashes  []journal.Digest // of the entries
	writers map[*journal.Entry]string
	long    bool         // it has more than inspect.MaxHistory entries or maxRead bytes, and was not kept
	size    atomic.Int64 // bytes of what it says, as far as that was read

	mu     sync.Mutex
	events []history.Event // nil: they were not told yet
}

// told are the events of a journal.
func (k *kept) told(ctx context.Context, rt *quipu.Runtime, j *explain.Job) ([]history.Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.events != nil {
		return k.events, nil
	}
	events, beside := tell(ctx, rt, j, k.entries)
	if err := ctx.Err(); err != nil { // outputs may be missing that are there
		return nil, err
	}
	k.events = events
	k.size.Add(beside)
	return events, nil
}

// journal returns the journal of a job that has these effects; nil if it is not on the shelf and
// has more than most entries, as far as that can be known: an effect mostly has two.
func (s *Shelf) journal(
	ctx context.Context, rt *quipu.Runtime, j *explain.Job, effects []store.JobEffect, most int,
) (*kept, error) {
	mark := markOf(j.View, effects)
	if k := s.find(mark); k != nil {
		return k, nil
	}
	if most < inspect.MaxHistory && j.View.Head.Seq+2*int64(len(effects)) > int64(most) {
		return nil, nil
	}
	k, err := read(ctx, rt, j)
	if err == nil && !k.long {
		k.mark = mark
		s.keep(k)
	}
	return k, err
}

// markOf names a state of a journal. What is written to a chain of effects changes an effect, or
// the head of the chain in its request's row.
func markOf(v *store.JobView, effects []store.JobEffect) (mark [sha256.Size]byte) {
	h := sha256.New()
	var number [8]byte
	add := func(b []byte) {
		binary.BigEndian.PutUint64(number[:], uint64(len(b)))
		h.Write(number[:])
		h.Write(b)
	}
	add(v.ID[:])
	add(v.Head.Hash[:])
	for i := range v.Rows {
		add(v.Rows[i].GUID[:])
		add(v.Rows[i].Effects.Hash[:])
	}
	for i := range effects {
		f := &effects[i]
		add(f.Key[:])
		add([]byte(f.State))
		binary.BigEndian.PutUint64(number[:], uint64(f.Fence))
		h.Write(number[:])
	}
	h.Sum(mark[:0])
	return mark
}

func (s *Shelf) find(mark [sha256.Size]byte) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.kept, func(k *kept) bool { return k.mark == mark })
	if at < 0 {
		return nil
	}
	k := s.kept[at]
	s.kept = slices.Insert(slices.Delete(s.kept, at, at+1), 0, k)
	return k
}

// keep puts a journal in front.
func (s *Shelf) keep(k *kept) {
	s.mu.Lock()
	s.kept = append([]*kept{k}, slices.DeleteFunc(s.kept, func(x *kept) bool { return x.mark == k.mark })...)
	s.mu.Unlock()
	s.trim()
}

// trim drops what has been used least, until what is left keeps the limits.
func (s *Shelf) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, bytes := 0, int64(0)
	s.kept = slices.DeleteFunc(s.kept, func(x *kept) bool {
		if entries+len(x.entries) > maxShelved || bytes+x.size.Load() > maxShelvedBytes {
			return true
		}
		entries, bytes = entries+len(x.entries), bytes+x.size.Load()
		return false
	})
}

// read reads a journal from the database.
func read(ctx context.Context, rt *quipu.Runtime, j *explain.Job) (*kept, error) {
	most := min(j.View.Head.Seq, inspect.MaxHistory)
	k := &kept{
		entries: make([]*journal.Entry, 0, most), hashes: make([]journal.Digest, 0, most),
		writers: make(map[*journal.Entry]string, most),
	}
	records := make(chan journal.Record, 1000) // they are decoded beside the reading
	var work errgroup.Group
	work.Go(func() (err error) {
		for rec := range records {
			if err != nil {
				continue // the reader is not to wait
			}
			var e *journal.Entry
			if e, err = journal.Decode(rec); err == nil {
				k.entries, k.hashes = append(k.entries, e), append(k.hashes, rec.Hash)
			}
		}
		return err
	})
	err := below.Of(rt).Audit(ctx, j.View.ID, func(_ *store.Stored, all iter.Seq2[journal.Record, error]) error {
		n := 0
		for rec, err := range all {
			if err != nil {
				return err
			}
			if k.long = n == inspect.MaxHistory || k.size.Add(int64(len(rec.Body))) > maxRead; k.long {
				return nil
			}
			n++
			records <- rec
		}
		return nil
	})
	close(records)
	if err = cmp.Or(work.Wait(), err); err != nil || k.long {
		k.entries, k.hashes = nil, nil
		return k, err
	}
	last := map[journal.GUID]string{}
	for _, e := range k.entries {
		if e.Writer != "" {
			last[e.Chain] = e.Writer
		}
		k.writers[e] = last[e.Chain]
	}
	return k, nil
}
