package engine

import "github.com/quipu-journal/quipu/journal"

// tellEnded tells those who wait for a job that it has ended (W5): in this process by
// Config.Ended, in others by the bus. A quarantined job counts too: it does not go on by
// itself, so nobody needs to wait any longer.
func (l *loop) tellEnded(b *batch) {
	var jobs []journal.JobID
	for i := range b.plans {
		if p := b.plans[i].Plan; p.Tasks || p.NewState == journal.JobQuarantined {
			jobs = append(jobs, p.Job)
		}
	}
	if len(jobs) == 0 {
		return
	}
	if l.cfg.Ended != nil {
		l.cfg.Ended(jobs)
	}
	keys := make([][16]byte, len(jobs))
	for i, id := range jobs {
		keys[i] = id
	}
	if l.cfg.Bus != nil {
		l.cfg.Bus.Tell(keys...)
	}
}
