package postgres

import (
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/journal"
)

// manyNumbers bounds how many numbers of jobs are remembered: twice as many at most.
const manyNumbers = 1 << 14

// numbers remembers the numbers of jobs that this process has read or written, so that writes
// need not look them up in the table of jobs. A number may be old, because retention moves jobs
// (W11). A write compares it while it moves the job, in the same commit, and forgets it if the
// commit fails; a read compares it with what it has read, and reads again. It is safe for
// concurrent use.
type numbers struct {
	mu sync.Mutex
	// recent has the last ones. When it is full it becomes older, whose own are forgotten.
	recent, older map[journal.JobID]int64
}

// fill gives the jobs that a batch moves their numbers, as far as they are known, and those of its
// effects their span. A job that the batch begins has none yet.
func (k *numbers) fill(w *writes) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range w.jobs {
		j.n = k.number(j.job)
	}
	w.span = noJobs
	for _, f := range w.effects {
		w.span = w.span.with(k.number(f.job))
	}
	if w.span.from == 0 { // one is not known
		w.span = allJobs
	}
}

// number returns the number of a job, 0 if it is not known.
func (k *numbers) number(job journal.JobID) int64 {
	if n := k.recent[job]; n != 0 {
		return n
	}
	n := k.older[job]
	if n != 0 {
		k.put(job, n) // those in use stay
	}
	return n
}

func (k *numbers) set(job journal.JobID, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(job, n)
}

func (k *numbers) put(job journal.JobID, n int64) {
	if len(k.recent) >= manyNumbers || k.recent == nil {
		k.older, k.recent = k.recent, make(map[journal.JobID]int64)
	}
	k.recent[job] = n
}

// learn remembers the numbers of jobs that a commit began. One that failed may have relied on numbers
// that are old: it forgets them.
func (k *numbers) learn(w *writes, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		for i, n := range w.born {
			k.put(w.births[i].Plan.Job, n)
		}
		return
	}
	forget := func(job journal.JobID) {
		delete(k.recent, job)
		delete(k.older, job)
	}
	for _, j := range w.jobs {
		forget(j.job)
	}
	for _, f := range w.effects {
		forget(f.job)
	}
}

// span is a range of the numbers of jobs, with both ends.
type span struct{ from, to int64 }

// Every job is in the span allJobs, and none in noJobs.
var allJobs, noJobs = span{0, math.MaxInt64}, span{math.MaxInt64, 0}

// with returns the span with another number in it.
func (s span) with(n int64) span { return span{min(s.from, n), max(s.to, n)} }

func (s span) holds(x span) bool { return s.from <= x.from && x.to <= s.to }

// ends are the parameters of the span.
func (s span) ends() [][]byte { return [][]byte{pInt(s.from), pInt(s.to)} }

// span returns that of jobs, allJobs if it is not known.
func (k *numbers) span(jobs []journal.JobID) span {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := noJobs
	for _, job := range jobs {
		n := k.number(job)
		if n == 0 {
			return allJobs
		}
		s = s.with(n)
	}
	return s
}

// spans returns rows by the class of their jobs, with the span of these: that of classes would have
// the partitions between them, too. Jobs without a known number come by themselves. of gives the job
// of a row.
func spans[T any](rows []*T, of func(*T) *jobWrite) iter.Seq2[span, []*T] {
	class := func(row *T) int64 {
		if n := known(of(row)); n != 0 {
			return n / classNumbers
		}
		return -1
	}
	return func(yield func(span, []*T) bool) {
		for len(rows) > 0 {
			first, all := class(rows[0]), rows
			other := func(row *T) bool { return class(row) != first }
			if rows = nil; slices.ContainsFunc(all, other) {
				rows = slices.DeleteFunc(slices.Clone(all), func(row *T) bool { return !other(row) })
				all = slices.DeleteFunc(slices.Clone(all), other)
			}
			s := allJobs
			if first >= 0 {
				s = noJobs
				for _, row := range all {
					s = s.with(of(row).n)
				}
			}
			if !yield(s, all) {
				return
			}
		}
	}
}
