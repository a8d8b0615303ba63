package postgres

import "github.com/quipu-journal/quipu/collation"

// threshold is the semaphore at which a job closes (C14).
const threshold = 0

// writeStatements are the statements that queue may add.
var writeStatements = []string{
	"begin", "commit", "rollback", "write_marker", "hot", "write_flows_active", "write_jobs_next", "write_jobs_new", "write_jobs", "write_head", "write_receipts_new", "write_receipts", "write_receipts_gone",
	"write_instances_new", "write_instances", "write_entries", "write_rows_delete", "write_rows_discard", "write_rows_new",
	"write_rows", "write_mailboxes", "write_waits_delete", "write_waits_new", "write_waits", "write_kept_due",
	"write_resolved", "write_letters_end", "write_letters", "chains_put", "effects_new", "effects_move", "effects_judged", "payloads_put", "letters_act", "signals_put", "signals_became", "announce",
	"repair_instances", "repair_receipts", "repair_waits", "repair_effects", "repair_resolved",
}

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
		queueBirths(b, w.births)
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
	n := len(set)
	job, number, guid, verdict := uuids(n), ints(n), uuids(n), texts(n)
	before, after, seq := ints(n), ints(n), ints(n)
	for _, r := range set {
		job.uuid(r.job)
		number.someInt(known(r.of))
		guid.uuid(r.GUID)
		verdict.text(string(r.Verdict))
		before.int(int64(r.Before))
		after.int(int64(r.After))
		seq.int(r.Seq)
	}
	if set[0].New {
		b.queue("write_receipts_new", job.value(), number.value(), guid.value(), after.value(), verdict.value(), seq.value())
		return
	}
	statement := "write_receipts"
	if set[0].Gone {
		statement = "write_receipts_gone"
	}
	b.queue(statement, span.after([][]byte{job.value(), number.value(), guid.value(), before.value(), after.value()})...)
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
	if n := len(gone); n > 0 {
		job, guid, sender := uuids(n), uuids(n), uuids(n)
		for _, r := range gone {
			job.uuid(r.key.job)
			guid.uuid(r.key.guid)
			sender.someUUID(r.sender)
		}
		b.queue("write_rows_delete", job.value(), guid.value(), sender.value(), revs(gone))
	}
	if len(fresh) > 0 {
		b.queue("write_rows_new", rowColumns.param(fresh))
	}
	if len(moved) > 0 {
		b.queue("write_rows", rowColumns.param(moved), revs(stay))
	}
}

// revs returns the revs that decisions on hot states rest on, NULL for other rows.
func revs(rows []*rowWrite) []byte {
	rev := ints(len(rows))
	for _, r := range rows {
		if r.was == nil {
			rev.null()
		} else {
			rev.int(*r.was)
		}
	}
	return rev.value()
}

func queueLetters(b *batch, letters []letterWrite) {
	n := len(letters)
	job, guid, kind, activity, dad := uuids(n), uuids(n), texts(n), texts(n), texts(n)
	reason, message, ledger, state, raw, stray := texts(n), texts(n), ints(n), texts(n), byteas(n), ints(n)
	for i := range letters {
		l := &letters[i]
		if l.Stray {
			stray.int(int64(l.Size()))
		} else {
			stray.null()
		}
		job.uuid(l.Job)
		guid.uuid(l.Row)
		kind.text(string(l.Kind))
		activity.text(l.Activity)
		dad.text(string(l.DAD))
		reason.text(l.Reason)
		message.text(l.Message)
		ledger.int(int64(l.Ledger))
		state.text(l.state)
		raw.someBytes(l.Raw)
	}
	b.queue("write_letters", job.value(), guid.value(), kind.value(), activity.value(), dad.value(),
		reason.value(), message.value(), ledger.value(), state.value(), raw.value(), stray.value())
}

func queuePayloads(b *batch, payloads []payloadWrite) {
	n := len(payloads)
	job, digest, body := uuids(n), byteas(n), byteas(n)
	for i := range payloads {
		job.uuid(payloads[i].job)
		digest.bytes(payloads[i].Digest[:])
		body.bytes(payloads[i].Body)
	}
	b.queue("payloads_put", job.value(), digest.value(), body.value())
}

func queueActed(b *batch, ends []collation.LetterEnd) {
	id, state := ints(len(ends)), texts(len(ends))
	for i := range ends {
		id.int(ends[i].ID)
		state.text(ends[i].State)
	}
	b.queue("letters_act", id.value(), state.value())
}

// rowKeys returns the columns of row keys.
func rowKeys(keys []rowKey) [][]byte {
	job, guid := uuids(len(keys)), uuids(len(keys))
	for _, k := range keys {
		job.uuid(k.job)
		guid.uuid(k.guid)
	}
	return [][]byte{job.value(), guid.value()}
}
