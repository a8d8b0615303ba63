package postgres

import "github.com/quipu-journal/quipu/collation"

// threshold is the semaphore at which a job closes (C14).
const threshold = 0

// writeStatements are the statements that queue may add.
var writeStatements = []string{
	"begin", "commit", "rollback", "write_marker", "session_alive", "hot_jobs", "hot_rows", "write_flows_active", "write_jobs_next", "write_jobs_new", "write_jobs", "write_head", "write_receipts_new", "write_receipts", "write_receipts_gone",
	"write_instances_new", "write_instances", "write_entries", "write_rows_delete", "write_rows_discard", "write_rows_new",
	"write_rows", "write_mailboxes", "write_waits_delete", "write_waits_new", "write_waits", "write_kept_due",
	"write_resolved", "write_letters_end", "write_letters", "chains_put", "effects_put", "effects_judged", "payloads_put", "letters_act", "signals_put", "signals_became", "announce",
}

// queue adds the statements that have rows to write, in the lock order of rule J3. The jobs are
// locked already, or by their guards.
func (w *writes) queue(b *batch) {
	if len(w.sessions) > 0 {
		b.queue("session_alive", pInts(w.sessions...))
	}
	w.queueGuards(b)
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
	w.queueInstances(b)
	w.queueReceipts(b)
	if len(w.entries) > 0 {
		queueEntries(b, w.entries)
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
// no more than the head.
func (w *writes) queueJobs(b *batch) {
	var heads, jobs []*jobWrite
	for _, j := range w.jobs {
		if j.semAfter == j.semBefore && j.state == "" && j.closer == nil && j.tasksSeq == 0 {
			heads = append(heads, j)
		} else {
			jobs = append(jobs, j)
		}
	}
	if len(heads) > 0 {
		queueHeads(b, heads)
	}
	if len(jobs) > 0 {
		queueMoves(b, jobs)
	}
}

func queueHeads(b *batch, jobs []*jobWrite) {
	n := len(jobs)
	id, semaphore, before, after, hash := uuids(n), ints(n), ints(n), ints(n), byteas(n)
	for _, j := range jobs {
		id.uuid(j.job)
		semaphore.int(j.semBefore)
		before.int(j.seqBefore)
		after.int(j.seqAfter)
		hash.bytes(j.hash[:])
	}
	b.queue("write_head", id.value(), semaphore.value(), before.value(), after.value(), hash.value())
}

func queueMoves(b *batch, jobs []*jobWrite) {
	n := len(jobs)
	id, guid, hash, state := uuids(n), uuids(n), byteas(n), texts(n)
	semBefore, semAfter, seqBefore, seqAfter := ints(n), ints(n), ints(n), ints(n)
	closes, fresh := bools(n), bools(n)
	closeSeq, tasksSeq, before, after, seq, expires := ints(n), ints(n), ints(n), ints(n), ints(n), ints(n)
	for _, j := range jobs {
		id.uuid(j.job)
		semBefore.int(j.semBefore)
		semAfter.int(j.semAfter)
		seqBefore.int(j.seqBefore)
		seqAfter.int(j.seqAfter)
		hash.bytes(j.hash[:])
		state.text(string(j.state))
		tasksSeq.int(j.tasksSeq)
		expires.int(int64(j.expires))
		closes.bool(j.closer != nil)
		if c := j.closer; c != nil {
			closeSeq.int(j.closeSeq)
			guid.uuid(c.GUID)
			fresh.bool(c.New)
			before.int(int64(c.Before))
			after.int(int64(c.After))
			seq.int(c.Seq)
			continue
		}
		// closed_seq shows a close that no plan predicted; the statement refuses it.
		closeSeq.int(j.seqAfter)
		guid.null()
		fresh.bool(false)
		before.int(0)
		after.int(0)
		seq.int(0)
	}
	b.queue("write_jobs", id.value(), semBefore.value(), semAfter.value(), seqBefore.value(), seqAfter.value(),
		hash.value(), state.value(), closes.value(), closeSeq.value(), tasksSeq.value(), guid.value(),
		fresh.value(), before.value(), after.value(), seq.value(), expires.value(), pInt(threshold))
}

func (w *writes) queueInstances(b *batch) {
	var fresh, moved []*instanceWrite
	for _, i := range w.instances {
		if i.New {
			fresh = append(fresh, i)
		} else {
			moved = append(moved, i)
		}
	}
	if n := len(fresh); n > 0 {
		addresses := texts(n)
		for _, i := range fresh {
			addresses.text(string(i.Key.DAD))
		}
		b.queue("write_instances_new", instanceParams(fresh, addresses)...)
	}
	if n := len(moved); n > 0 {
		before := ints(n)
		for _, i := range moved {
			before.int(int64(i.Before))
		}
		b.queue("write_instances", instanceParams(moved, before)...)
	}
}

// instanceParams returns the columns that new and moved instances share; other, which they do not
// share, comes after the keys.
func instanceParams(instances []*instanceWrite, other *column) [][]byte {
	n := len(instances)
	job, activity, dad, join := uuids(n), texts(n), uuids(n), bools(n)
	after := make([]*collation.Instance, n)
	for at, i := range instances {
		job.uuid(i.job)
		activity.text(i.Key.Activity)
		dad.uuid(i.Key.DAD.Key())
		join.bool(i.Join)
		after[at] = &collation.Instance{Ledger: i.After, ResultSeq: i.ResultSeq, Code: i.Code, More: i.More}
	}
	keys := [][]byte{job.value(), activity.value(), dad.value(), join.value(), other.value()}
	return append(keys, instanceColumns.params(after)...)
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
		n := len(set)
		if n == 0 {
			continue
		}
		job, guid, verdict := uuids(n), uuids(n), texts(n)
		before, after, seq := ints(n), ints(n), ints(n)
		for _, r := range set {
			job.uuid(r.job)
			guid.uuid(r.GUID)
			verdict.text(string(r.Verdict))
			before.int(int64(r.Before))
			after.int(int64(r.After))
			seq.int(r.Seq)
		}
		switch {
		case set[0].Gone:
			b.queue("write_receipts_gone", job.value(), guid.value(), before.value(), after.value())
		case set[0].New:
			b.queue("write_receipts_new", job.value(), guid.value(), after.value(), verdict.value(), seq.value())
		default:
			b.queue("write_receipts", job.value(), guid.value(), before.value(), after.value())
		}
	}
}

func queueEntries(b *batch, entries []entryWrite) {
	n, size := len(entries), 0
	for i := range entries {
		size += len(entries[i].body)
	}
	job, chain, seq, body, hash := uuids(n), uuids(n), ints(n), newColumn(oidBytea, n, size/n+1), byteas(n)
	for i := range entries {
		e := &entries[i]
		job.uuid(e.job)
		chain.uuid(e.chain)
		seq.int(e.seq)
		body.bytes(e.body)
		hash.bytes(e.hash[:])
	}
	b.queue("write_entries", job.value(), chain.value(), seq.value(), body.value(), hash.value())
}

func (w *writes) queueRows(b *batch) {
	var gone []*rowWrite
	var fresh, moved []*collation.Row
	for _, r := range w.rows {
		switch {
		case r.after == nil:
			gone = append(gone, r)
		case r.stood:
			moved = append(moved, r.after)
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
		b.queue("write_rows_delete", job.value(), guid.value(), sender.value())
	}
	if len(fresh) > 0 {
		b.queue("write_rows_new", rowColumns.params(fresh)...)
	}
	if len(moved) > 0 {
		b.queue("write_rows", rowColumns.params(moved)...)
	}
}

func queueLetters(b *batch, letters []letterWrite) {
	n := len(letters)
	job, guid, kind, activity, dad := uuids(n), uuids(n), texts(n), texts(n), texts(n)
	reason, message, ledger, state, raw := texts(n), texts(n), ints(n), texts(n), byteas(n)
	for i := range letters {
		l := &letters[i]
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
		reason.value(), message.value(), ledger.value(), state.value(), raw.value())
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
