package engine

import (
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// How many ends are remembered, how large an output may be, in bytes, and for how long.
const (
	manyLately   = 1024
	outputLately = 4 << 10
	lastLately   = 5 * time.Second
)

// lately has how jobs completed whose ends nobody waited for: a job may end in the commit that begins
// it, before its starter can wait. What it does not have is read.
type lately struct {
	ends  map[journal.JobID]late
	order []journal.JobID // of ends, the oldest first
}

type late struct {
	store.Outcome
	at time.Time
}

// add remembers an end, and forgets the oldest.
func (l *lately) add(job journal.JobID, o store.Outcome) {
	if o.State != journal.JobCompleted || len(o.Output) > outputLately {
		return
	}
	if l.ends == nil {
		l.ends = make(map[journal.JobID]late)
	}
	if len(l.order) == manyLately {
		delete(l.ends, l.order[0])
		l.order = l.order[1:]
	}
	if _, again := l.ends[job]; !again {
		l.order = append(l.order, job)
	}
	l.ends[job] = late{o, time.Now()}
}

// of returns how a job completed, if that is remembered.
func (l *lately) of(job journal.JobID) (o store.Outcome, known bool) {
	end, known := l.ends[job]
	return end.Outcome, known && time.Since(end.at) < lastLately
}
