package postgres

import "github.com/quipu-journal/quipu/collation"

// threshold is the semaphore at which a job closes (C14).
const threshold = 0

// write queues a statement about xs, if there are any.
func write[T any](b *batch, name string, xs []T, put func(*columns, T), more ...[]byte) {
	if len(xs) > 0 {
		b.queue(name, append(arrays(xs, put), more...)...)
	}
}

// queue adds the statements that have rows to write, in the lock order of rule J3. The jobs are
// locked already, or by what moves them after a decision on a hot state. The marker comes before
// them and checks w.sessions.
func (w *writes) queue(b *batch) {
	queueGuards(b, w.hot[:w.alone])
	boxes := w.registers()
	if len(boxes) > 0 {
		b.queue("write_mailboxes", lockKeys(boxes))
	}
	write(b, "write_jobs_next", w.nexts, func(c *columns, p *collation.Plan) { c.uuid(p.Job); c.uuid(p.Next) })
	if len(w.births) > 0 {
		w.queueActive(b)
		w.queueBirths(b)
	}
	w.queueJobs(b)
	w.queueRepairs(b)
	w.queueInstances(b)
	w.queueReceipts(b)
	write(b, "write_entries", w.entries, func(c *columns, e entryWrite) { record(c, entryColumns, &e) })
	w.queueRows(b)
	write(b, "write_rows_discard", w.discards, putKey)
	w.queueChains(b)
	w.queueWaits(b)
	w.queueKept(b, boxes)
	write(b, "write_resolved", w.resolved, putResolved)
	write(b, "payloads_put", w.payloads, func(c *columns, p payloadWrite) {
		c.uuid(p.job)
		c.bytes(p.Digest[:])
		c.bytes(p.Body)
	})
	write(b, "letters_act", w.acted, func(c *columns, e collation.LetterEnd) { c.int(e.ID); c.text(e.State) })
	write(b, "write_letters_end", w.resolve, putKey)
	write(b, "write_letters", w.letters, putLetter)
	w.queueSignals(b)
	if w.announce {
		b.queue("announce")
	}
}

// queueJobs moves the jobs: mostly the semaphore too, sometimes only the head. A worker may move
// no more than the head.
func (w *writes) queueJobs(b *batch) {
	var heads, jobs []*jobWrite
	for _, j := range w.jobs {
		if j.onlyHead() {
			heads = append(heads, j)
		} else {
			jobs = append(jobs, j)
		}
	}
	write(b, "write_head", heads, func(c *columns, j *jobWrite) { record(c, headColumns, j) })
	for span, jobs := range spans(jobs, func(j *jobWrite) *jobWrite { return j }) {
		put := func(c *columns, j *jobWrite) { record(c, moveColumns, j) }
		write(b, "write_jobs", jobs, put, append([][]byte{pInt(threshold)}, span.ends()...)...)
	}
}

func (w *writes) queueInstances(b *batch) {
	var fresh, moved []*placed
	for _, i := range w.instances {
		if i.New {
			fresh = append(fresh, i.placed())
		} else {
			moved = append(moved, i.placed())
		}
	}
	put := func(c *columns, i *placed) { record(c, placedColumns, i) }
	write(b, "write_instances_new", fresh, put)
	for span, moved := range spans(moved, func(i *placed) *jobWrite { return i.of }) {
		write(b, "write_instances", moved, put, span.ends()...)
	}
}

// queueReceipts writes all receipts except the closing ones, which the compound statement writes. What
// closes a job that the batch begins has its snapshot digit already.
func (w *writes) queueReceipts(b *batch) {
	var fresh, moved, gone []*receiptWrite
	for _, r := range w.receipts {
		switch {
		case r.Closes && !r.of.born, r.New && r.Gone:
		case r.Gone:
			gone = append(gone, r)
		case r.New:
			fresh = append(fresh, r)
		default:
			moved = append(moved, r)
		}
	}
	key := func(c *columns, r *receiptWrite) { c.uuid(r.job); c.someInt(known(r.of)); c.uuid(r.GUID) }
	write(b, "write_receipts_new", fresh, func(c *columns, r *receiptWrite) {
		key(c, r)
		c.int(int64(r.After))
		c.text(string(r.Verdict))
		c.int(r.Seq)
	})
	move := func(name string, set []*receiptWrite) {
		for span, set := range spans(set, func(r *receiptWrite) *jobWrite { return r.of }) {
			write(b, name, set, func(c *columns, r *receiptWrite) {
				key(c, r)
				c.int(int64(r.Before))
				c.int(int64(r.After))
			}, span.ends()...)
		}
	}
	move("write_receipts", moved)
	move("write_receipts_gone", gone)
}

func (w *writes) queueRows(b *batch) {
	var gone, fresh, moved []*rowWrite
	for _, r := range w.rows {
		switch {
		case r.after == nil:
			gone = append(gone, r)
		case r.existed:
			moved = append(moved, r)
		default:
			fresh = append(fresh, r)
		}
	}
	write(b, "write_rows_delete", gone, func(c *columns, r *rowWrite) {
		putKey(c, r.key)
		c.someUUID(r.sender)
		c.intAt(r.was)
	})
	write(b, "write_rows_new", fresh, func(c *columns, r *rowWrite) { record(c, rowColumns, r.after) })
	write(b, "write_rows", moved, func(c *columns, r *rowWrite) { record(c, rowColumns, r.after); c.intAt(r.was) })
}

func putLetter(c *columns, l letterWrite) {
	c.uuid(l.Job)
	c.uuid(l.Row)
	c.text(string(l.Kind))
	c.text(l.Activity)
	c.text(string(l.DAD))
	c.text(l.Reason)
	c.text(l.Message)
	c.int(int64(l.Ledger))
	c.text(l.state)
	c.someBytes(l.Raw)
	var stray *int64
	if l.Unclaimed {
		size := int64(l.Size())
		stray = &size
	}
	c.intAt(stray)
}
