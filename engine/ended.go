package engine

import "github.com/quipu-journal/quipu/journal"

// ended tells those who wait for a job that it has ended (W5): in this process by
// Config.Ended, in others by the bus. Nothing of a quarantined job goes on by
// itself, so that nobody waits for it any more either.
func (c *committer) ended(b *batch) {
	var jobs []journal.JobID
	for i := range b.plans {
		if p := b.plans[i].Plan; p.Tasks || p.NewState == journal.JobQuarantined {
			jobs = append(jobs, p.Job)
		}
	}
	if len(jobs) == 0 {
		return
	}
	if c.cfg.Ended != nil {
		c.cfg.Ended(jobs)
	}
	keys := make([][16]byte, len(jobs))
	for i, id := range jobs {
		keys[i] = id
	}
	c.cfg.Bus.Tell(keys...)
}
