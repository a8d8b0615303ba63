package engine

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Ended is a job that has just ended.
type Ended struct {
	Job journal.JobID
	// How is the outcome, if the commit that ended the job has all of it. Else it is not Over.
	How store.Outcome
}

// tellEnded tells those who wait for a job that it has ended (W5): in this process by
// Config.Ended, in others by the bus. A quarantined job counts too: it does not go on by
// itself, so nobody needs to wait any longer.
func (l *loop) tellEnded(b *batch) {
	var jobs []Ended
	for i := range b.plans {
		if p := b.plans[i].Plan; p.Tasks || p.NewState == journal.JobQuarantined {
			jobs = append(jobs, Ended{p.Job, b.outcome(p)})
		}
	}
	if len(jobs) == 0 {
		return
	}
	if l.cfg.Ended != nil {
		l.cfg.Ended(jobs)
	}
	keys := make([][16]byte, len(jobs))
	for i := range jobs {
		keys[i] = jobs[i].Job
	}
	if l.cfg.Bus != nil {
		l.cfg.Bus.Tell(keys...)
	}
}

// outcome is how the plan ended its job, if it closed the job and ran its completion tasks.
func (b *batch) outcome(p *collation.Plan) (o store.Outcome) {
	st, c := b.loaded.States[p.Job], p.Close
	if st == nil || c == nil || !p.Tasks || p.NewState == "" {
		return o
	}
	return store.Outcome{Key: st.Job.Key, State: c.State, Ended: true, Code: c.Code, Error: c.Error, Output: c.Output}
}

// Runs reports whether this process runs a request of the job: then it will most likely commit the
// job's end itself, and tell of it.
func (c *Committer) Runs(job journal.JobID) bool {
	st := c.cache.state(job)
	if st == nil || c.cfg.Session == nil {
		return false
	}
	own, alive := c.cfg.Session.Current()
	for _, r := range st.Rows {
		if alive && r.Holder != "" && r.Session == own { // without a holder the session only sends the row
			return true
		}
	}
	return false
}
