package inspect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of what is held of journals in memory.
const (
	// maxShelved bounds the entries of all jobs that a shelf keeps. A decoded entry with its event
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

// shelf keeps the journals that were read last, so that who looks at a long one again does not read,
// decode and fold it again. The journal is insert-only: it is the same as long as its heads are, that
// of the main chain and those of the chains of effects. A proof never comes from here. The zero value
// is ready.
type shelf struct {
	mu   sync.Mutex
	kept []*kept // the last used first
}

// kept is a journal as it was read. Nothing in it changes, but that it is folded when that is first
// wanted.
type kept struct {
	mark    [sha256.Size]byte
	entries []*journal.Entry // those of the main chain, then those of the effect chains
	// writers are the processes that wrote the entries: one that does not say it has the writer of the
	// one before it.
	writers []string
	long    string       // what it has too much of, so that it was not kept; "": nothing
	size    atomic.Int64 // bytes of what it says, as far as that was read

	mu   sync.Mutex
	fold *fold // nil: it was not folded yet
}

// told folds a journal whole, with the parts that are wanted.
func (k *kept) told(ctx context.Context, x *reading, p parts) (*fold, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.fold; f != nil && f.parts.have(p) && !(f.cut && x.want.AnySize) {
		return f, nil
	}
	if k.fold != nil {
		p = k.fold.parts.with(p)
	}
	f := x.newFold(ctx, p)
	for i, e := range k.entries {
		if err := f.add(e, k.writers[i]); err != nil {
			return nil, err
		}
	}
	if f.teller != nil {
		f.teller.finish()
	}
	if err := cmp.Or(ctx.Err(), f.grow(ctx, x)); err != nil { // outputs may be missing that are there
		return nil, err
	}
	if k.fold == nil {
		k.size.Add(f.beside)
	}
	k.fold = f
	return f, nil
}

// grow makes the tree of spans. It looks up the traces of the jobs to which the job is linked.
func (f *fold) grow(ctx context.Context, x *reading) (failed error) {
	if f.spans == nil {
		return nil
	}
	f.tree = f.spans.Tree(func(other journal.JobID) string {
		v, err := x.Source.Job(ctx, other)
		if err != nil {
			if !errors.Is(err, store.ErrNotFound) {
				failed = fmt.Errorf("read a job to which job %s is linked: %w", x.now.ID, err)
			}
			return ""
		}
		return v.Trace
	})
	return failed
}

// journal returns the journal of a job; nil if it is not on the shelf and has more than most entries, as
// far as that can be known: an effect mostly has two.
func (s *shelf) journal(ctx context.Context, x *reading, most int) (*kept, error) {
	mark := markOf(x.now, x.effects)
	if k := s.find(mark); k != nil {
		return k, nil
	}
	if most < MaxHistory && x.now.Head.Seq+2*int64(len(x.effects)) > int64(most) {
		return nil, nil
	}
	k, err := x.entries(ctx)
	if err == nil && k.long == "" {
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

func (s *shelf) find(mark [sha256.Size]byte) *kept {
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
func (s *shelf) keep(k *kept) {
	s.mu.Lock()
	s.kept = append([]*kept{k}, slices.DeleteFunc(s.kept, func(x *kept) bool { return x.mark == k.mark })...)
	s.mu.Unlock()
	s.trim()
}

// trim drops what has been used least, until what is left keeps the limits.
func (s *shelf) trim() {
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

// entries reads the journal from the database, to its end, before anything else is read: reading it
// holds a connection. ErrTombstone: it has none any more.
func (x *reading) entries(ctx context.Context) (*kept, error) {
	most := min(x.now.Head.Seq, MaxHistory)
	k := &kept{entries: make([]*journal.Entry, 0, most), writers: make([]string, 0, most)}
	records := make(chan journal.Record, 1000) // they are decoded beside the reading
	var work errgroup.Group
	work.Go(func() (err error) {
		last := map[journal.GUID]string{}
		for rec := range records {
			if err != nil {
				continue // the reader is not to wait
			}
			var e *journal.Entry
			if e, err = journal.Decode(rec); err != nil {
				continue
			}
			if e.Writer != "" {
				last[e.Chain] = e.Writer
			}
			k.entries, k.writers = append(k.entries, e), append(k.writers, last[e.Chain])
		}
		return err
	})
	err := x.Audit(ctx, x.now.ID, func(_ *store.Stored, all iter.Seq2[journal.Record, error]) error {
		n := 0
		for rec, err := range all {
			if err != nil {
				return err
			}
			if k.long = x.over(n, k.size.Add(int64(len(rec.Body)))); k.long != "" {
				return nil
			}
			n++
			records <- rec
		}
		return nil
	})
	close(records)
	if err = cmp.Or(work.Wait(), err); err == nil && k.long == "" && len(k.entries) == 0 {
		err = ErrTombstone
	}
	if err != nil || k.long != "" {
		k.entries, k.writers = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of job %q: %w", x.now.Key, err)
	}
	return k, nil
}

// over says which limit a journal is over that has n entries before the next one; "": none.
func (x *reading) over(n int, bytes int64) string {
	switch {
	case n == MaxHistory:
		return fmt.Sprintf("%d entries", MaxHistory)
	case bytes > maxRead && !x.want.AnySize:
		return fmt.Sprintf("%d MiB", maxRead>>20)
	}
	return ""
}
