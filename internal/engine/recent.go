package engine

import (
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of recentEnds: how many ends it has, how large an output may be, in bytes, and how long an
// end is remembered.
const (
	maxRecent       = 1024
	maxRecentOutput = 4 << 10
	recentFor       = 5 * time.Second
)

// recentEnds has how jobs completed whose ends nobody waited for: a job may end in the commit that begins
// it, before its starter can wait. What it does not have is read.
type recentEnds struct {
	ends  map[journal.JobID]recentEnd
	order []journal.JobID // of ends, the oldest first
}

type recentEnd struct {
	store.Outcome
	at time.Time
}

// add remembers an end, and forgets the oldest.
func (r *recentEnds) add(job journal.JobID, o store.Outcome) {
	if o.State != journal.JobCompleted || len(o.Output) > maxRecentOutput {
		return
	}
	if r.ends == nil {
		r.ends = make(map[journal.JobID]recentEnd)
	}
	if len(r.order) == maxRecent {
		delete(r.ends, r.order[0])
		r.order = r.order[1:]
	}
	if _, again := r.ends[job]; !again {
		r.order = append(r.order, job)
	}
	r.ends[job] = recentEnd{o, time.Now()}
}

// of returns how a job completed, if that is remembered.
func (r *recentEnds) of(job journal.JobID) (o store.Outcome, known bool) {
	end, known := r.ends[job]
	return end.Outcome, known && time.Since(end.at) < recentFor
}
