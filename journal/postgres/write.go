package postgres

import "github.com/quipu-journal/quipu/collation"

// threshold is the semaphore at which a job closes (C14).
const threshold = 0

// queue adds the statements that have rows to write, in the lock order of rule J3. The jobs are
// locked already, or by what moves them after a decision on a hot state. The marker comes before
// them and checks w.sessions.
func (w *writes) queue(b *batch) {
	queueGuards(b, w.hot[:w.apart])
	boxes := w.registers()
	if len(boxes) > 0 {
		b.queue("write_mailboxes", lockKeys(boxes))
	}
	if len(w.nexts) > 0 {
		queueNexts(b, w.nexts)
	}
	if len(w.births) > 0 {
		w.queueActive(b)
		w.queueBirths(b)
	}
	w.queueJobs(b)
	w.queueRepairs(b)
	w.queueInstances(b)
	w.queueReceipts(b)
	if len(w.entries) > 0 {
		b.queue("write_entries", entryColumns.param(pointers(w.entries)))
	}
	w.queueRows(b)
	if len(w.discards) > 0 {
		b.queue("write_rows_discard", rowKeys(w.discards)...)
	}
	w.queueChains(b)
	w.queueWaits(b)
	if len(boxes) > 0 {
		b.queue("write_kept_due", w.wakes(boxes)...)
	}
	if len(w.resolved) > 0 {
		queueResolved(b, w.resolved)
	}
	if len(w.payloads) > 0 {
		queuePayloads(b, w.payloads)
	}
	if len(w.acted) > 0 {
		queueActed(b, w.acted)
	}
	if len(w.resolve) > 0 {
		b.queue("write_letters_end", rowKeys(w.resolve)...)
	}
	if len(w.letters) > 0 {
		queueLetters(b, w.letters)
	}
	w.queueSignals(b)
	if w.announce {
		b.queue("announce")
	}
}

// queueJobs moves the jobs: mostly the semaphore too, sometimes only the head. A worker may move
// no more than the head. A job that the batch begins is inserted with its head.
func (w *writes) queueJobs(b *batch) {
	var heads, jobs []*jobWrite
	for _, j := range w.jobs {
		switch {
		case !j.onlyHead():
			jobs = append(jobs, j)
		case !j.born:
			heads = append(heads, j)
		}
	}
	if len(heads) > 0 {
		b.queue("write_head", headColumns.param(heads))
	}
	for span, jobs := range spans(jobs, func(j *jobWrite) *jobWrite { return j }) {
		b.queue("write_jobs", span.after([][]byte{moveColumns.param(jobs), pInt(threshold)})...)
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
	if len(fresh) > 0 {
		b.queue("write_instances_new", placedColumns.param(fresh))
	}
	for span, moved := range spans(moved, func(i *placed) *jobWrite { return i.of }) {
		b.queue("write_instances", span.after([][]byte{placedColumns.param(moved)})...)
	}
}

// queueReceipts writes all receipts except the closing ones, which the compound statement writes.
func (w *writes) queueReceipts(b *batch) {
	var fresh, moved, gone []*receiptWrite
	for _, r := range w.receipts {
		switch {
		case r.Closes, r.New && r.Gone:
		case r.Gone:
			gone = append(gone, r)
		case r.New:
			fresh = append(fresh, r)
		default:
			moved = append(moved, r)
		}
	}
	for _, set := range [][]*receiptWrite{fresh, moved, gone} {
		for span, set := range spans(set, func(r *receiptWrite) *jobWrite { return r.of }) {
			queueReceipts(b, span, set)
		}
	}
}

// queueReceipts writes receipts that are all new, all moved or all gone.
func queueReceipts(b *batch, span span, set []*receiptWrite) {
	fresh := set[0].New
	params := arrays(set, func(c *columns, r *receiptWrite) {
		c.uuid(r.job)
		c.someInt(known(r.of))
		c.uuid(r.GUID)
		if !fresh {
			c.int(int64(r.Before))
		}
		if c.int(int64(r.After)); fresh {
			c.text(string(r.Verdict))
			c.int(r.Seq)
		}
	})
	switch {
	case fresh:
		b.queue("write_receipts_new", params...)
	case set[0].Gone:
		b.queue("write_receipts_gone", span.after(params)...)
	default:
		b.queue("write_receipts", span.after(params)...)
	}
}

func (w *writes) queueRows(b *batch) {
	var gone, stay []*rowWrite
	var fresh, moved []*collation.Row
	for _, r := range w.rows {
		switch {
		case r.after == nil:
			gone = append(gone, r)
		case r.stood:
			stay, moved = append(stay, r), append(moved, r.after)
		default:
			fresh = append(fresh, r.after)
		}
	}
	if len(gone) > 0 {
		b.queue("write_rows_delete", arrays(gone, func(c *columns, r *rowWrite) {
			c.uuid(r.key.job)
			c.uuid(r.key.guid)
			c.someUUID(r.sender)
			c.intAt(r.was)
		})...)
	}
	if len(fresh) > 0 {
		b.queue("write_rows_new", rowColumns.param(fresh))
	}
	if len(moved) > 0 {
		revs := arrays(stay, func(c *columns, r *rowWrite) { c.intAt(r.was) })
		b.queue("write_rows", append([][]byte{rowColumns.param(moved)}, revs...)...)
	}
}

func queueLetters(b *batch, letters []letterWrite) {
	b.queue("write_letters", arrays(letters, func(c *columns, l letterWrite) {
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
		if l.Stray {
			size := int64(l.Size())
			stray = &size
		}
		c.intAt(stray)
	})...)
}

func queuePayloads(b *batch, payloads []payloadWrite) {
	b.queue("payloads_put", arrays(payloads, func(c *columns, p payloadWrite) {
		c.uuid(p.job)
		c.bytes(p.Digest[:])
		c.bytes(p.Body)
	})...)
}

func queueActed(b *batch, ends []collation.LetterEnd) {
	b.queue("letters_act", arrays(ends, func(c *columns, e collation.LetterEnd) { c.int(e.ID); c.text(e.State) })...)
}

// rowKeys returns the columns of row keys.
func rowKeys(keys []rowKey) [][]byte {
	return arrays(keys, func(c *columns, k rowKey) { c.uuid(k.job); c.uuid(k.guid) })
}
