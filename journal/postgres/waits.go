package postgres

import (
	"bytes"
	bin "encoding/binary"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// lockKeys returns the keys of the mailboxes' advisory locks, sorted, so that two transactions
// that lock several cannot deadlock (J3). If two mailboxes share a key, they only wait for each
// other needlessly.
func lockKeys(boxes []journal.JobID) []byte {
	keys := make([]int64, len(boxes))
	for i, m := range boxes {
		keys[i] = lockKey(m)
	}
	slices.Sort(keys)
	column := ints(len(keys))
	for _, k := range slices.Compact(keys) {
		column.int(k)
	}
	return column.value()
}

// lockKey returns the key of one mailbox's advisory lock.
func lockKey(box journal.JobID) int64 { return int64(bin.BigEndian.Uint64(box[:8])) }

// registers returns the mailboxes in which the batch registers waits, each once.
func (w *writes) registers() (boxes []journal.JobID) {
	for _, x := range w.waits {
		if !x.stood {
			boxes = append(boxes, x.box)
		}
	}
	slices.SortFunc(boxes, func(a, b journal.JobID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(boxes)
}

// wakes returns the mailboxes, and how many kept signals of each become due.
func (w *writes) wakes(boxes []journal.JobID) [][]byte {
	most := make(map[journal.JobID]int64, len(boxes))
	for _, x := range w.waits {
		if !x.stood && x.after != nil {
			most[x.box] += int64(x.after.Wakes())
		}
	}
	limits := ints(len(boxes))
	for _, box := range boxes {
		limits.int(most[box])
	}
	return [][]byte{pUUIDs(boxes), limits.value()}
}

// queueWaits adds the statements for waits that have rows to write.
func (w *writes) queueWaits(b *batch) {
	var gone, fresh, counted []*waitWrite
	for _, x := range w.waits {
		switch {
		case x.after == nil:
			gone = append(gone, x)
		case x.stood:
			counted = append(counted, x)
		default:
			fresh = append(fresh, x)
		}
	}
	if len(gone) > 0 {
		b.queue("write_waits_delete", seenColumns(gone)...)
	}
	if len(fresh) > 0 {
		boxes, all := uuids(len(fresh)), make([]*collation.Wait, len(fresh))
		for i, x := range fresh {
			boxes.uuid(x.box)
			all[i] = x.after
		}
		b.queue("write_waits_new", boxes.value(), waitColumns.param(all))
	}
	if len(counted) > 0 {
		after := ints(len(counted))
		for _, x := range counted {
			after.int(int64(x.after.Count))
		}
		b.queue("write_waits", append(seenColumns(counted), after.value())...)
	}
}

// seenColumns returns the columns of waits as they were read.
func seenColumns(waits []*waitWrite) [][]byte {
	n := len(waits)
	job, guid, count := uuids(n), uuids(n), ints(n)
	for _, w := range waits {
		job.uuid(w.key.job)
		guid.uuid(w.key.guid)
		count.int(int64(w.seen))
	}
	return [][]byte{job.value(), guid.value(), count.value()}
}

// queueSignals adds the statements for the records of signals.
func (w *writes) queueSignals(b *batch) {
	for _, fresh := range []bool{true, false} { // a signal may be recorded and then change in the same batch
		guid, state, n := uuids(len(w.signals)), texts(len(w.signals)), 0
		for _, x := range w.signals {
			if x.New == fresh {
				guid.uuid(x.GUID)
				state.text(string(x.State))
				n++
			}
		}
		switch {
		case n > 0 && fresh:
			b.queue("signals_put", guid.value(), state.value())
		case n > 0:
			b.queue("signals_became", guid.value(), state.value())
		}
	}
}
