package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// More loads what decisions missed into the states of the open transaction
// (J2). What a state holds already is left as it is: plans of this batch may
// have moved it on.
func (c *committer) More(ctx context.Context, needs map[journal.JobID]*collation.Need) error {
	if !c.open {
		return errNoTransaction
	}
	w := &wanted{}
	for job, need := range needs {
		st := c.states[job]
		if st == nil {
			return fmt.Errorf("postgres: more: job %s was not loaded", job)
		}
		w.jobs = append(w.jobs, job)
		w.ask(job, st, need.Instances, need.Results)
		for _, request := range need.Effects {
			w.effects = append(w.effects, rowKey{job, request})
		}
		if need.AllRows && !st.AllRows {
			w.allRows = append(w.allRows, job)
		}
	}
	b := c.conn.batch()
	w.queue(b)
	if len(b.names) == 0 {
		return nil
	}
	r := b.send(ctx)
	c.read(r, w)
	err := r.close()
	if err == nil {
		err = c.payloads(ctx)
	}
	if err != nil {
		_ = c.Rollback(ctx)
		return classify("more", err)
	}
	for _, job := range w.allRows {
		c.states[job].AllRows = true
	}
	return nil
}

// ref is a result whose output is stored beside its entry (E6).
type ref struct {
	job    journal.JobID
	digest journal.Digest
	result *flow.Result
}

// payloads reads the outputs that stand beside their entries: outputs too
// large for a message, so they cost a trip of their own.
func (c *committer) payloads(ctx context.Context) error {
	refs := c.refs
	c.refs = nil
	if len(refs) == 0 {
		return nil
	}
	job, digest := uuids(len(refs)), byteas(len(refs))
	for _, x := range refs {
		job.uuid(x.job)
		digest.bytes(x.digest[:])
	}
	b := c.conn.batch()
	b.queue("load_payloads", job.value(), digest.value())
	r := b.send(ctx)
	r.each(func(v row) error {
		refs[v.int(0)-1].result.Output = v.bytes(1)
		return nil
	})
	if err := r.close(); err != nil {
		return err
	}
	for _, x := range refs {
		if x.result.Output == nil {
			return fmt.Errorf("%w: job %s: the output %s, which a response names, is not stored", errCorrupt, x.job, x.digest)
		}
	}
	return nil
}

// decode reads an entry that the store wrote.
func decode(job journal.JobID, body []byte) (*journal.Entry, error) {
	e, err := journal.DecodeTrusted(body)
	if err != nil {
		return nil, fmt.Errorf("%w: job %s: %w", errCorrupt, job, err)
	}
	return e, nil
}
