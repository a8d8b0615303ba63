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
	return arrays(boxes, func(c *columns, box journal.JobID) { c.uuid(box); c.int(most[box]) })
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
		after := arrays(counted, func(c *columns, x *waitWrite) { c.int(int64(x.after.Count)) })
		b.queue("write_waits", append(seenColumns(counted), after...)...)
	}
}

// seenColumns returns the columns of waits as they were read.
func seenColumns(waits []*waitWrite) [][]byte {
	return arrays(waits, func(c *columns, w *waitWrite) {
		c.uuid(w.key.job)
		c.uuid(w.key.guid)
		c.int(int64(w.seen))
	})
}

// queueSignals adds the statements for the records of signals.
func (w *writes) queueSignals(b *batch) {
	put := func(name string, which bool) {
		signals := slices.DeleteFunc(slices.Clone(w.signals), func(x collation.SignalWrite) bool { return x.New != which })
		if len(signals) > 0 {
			b.queue(name, arrays(signals, func(c *columns, x collation.SignalWrite) { c.uuid(x.GUID); c.text(string(x.State)) })...)
		}
	}
	put("signals_put", true)
	put("signals_became", false) // a signal may be recorded and then change in the same batch
}
