package postgres

import (
	"bytes"
	bin "encoding/binary"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
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
		if !x.existed {
			boxes = append(boxes, x.box)
		}
	}
	slices.SortFunc(boxes, func(a, b journal.JobID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(boxes)
}

// queueKept makes the kept signals due that the mailboxes' new waits take, and notes those that
// this process is to publish.
func (w *writes) queueKept(b *batch, boxes []journal.JobID) {
	if len(boxes) == 0 {
		return
	}
	most, by := make(map[journal.JobID]int64), make(map[journal.JobID]collation.Sending)
	for _, x := range w.waits {
		if !x.existed && x.after != nil {
			most[x.box] += int64(x.after.Wakes())
			by[x.box] = x.by.Sending
		}
	}
	params := arrays(boxes, func(c *columns, box journal.JobID) {
		c.uuid(box)
		c.int(most[box])
		c.int(int64(by[box].Resend))
		c.int(by[box].Session)
	})
	*b = append(*b, step{"write_kept_due", params, func(v row) error {
		if box := v.job(0); by[box].Resend > 0 {
			w.released = append(w.released,
				store.OutgoingSignal(box, v.guid(1), int(v.int(2)), collation.Micros(v.int(3))))
		}
		return nil
	}})
}

// queueWaits adds the statements for waits that have rows to write.
func (w *writes) queueWaits(b *batch) {
	var gone, fresh, counted []*waitWrite
	for _, x := range w.waits {
		switch {
		case x.after == nil:
			gone = append(gone, x)
		case x.existed:
			counted = append(counted, x)
		default:
			fresh = append(fresh, x)
		}
	}
	seen := func(c *columns, w *waitWrite) { putKey(c, w.key); c.int(int64(w.seen)) } // as it was read
	write(b, "write_waits_delete", gone, seen)
	write(b, "write_waits_new", fresh, func(c *columns, w *waitWrite) { c.uuid(w.box); record(c, waitColumns, w.after) })
	write(b, "write_waits", counted, func(c *columns, w *waitWrite) { seen(c, w); c.int(int64(w.after.Count)) })
}

// queueSignals adds the statements for the records of signals. One may be recorded and then change
// in the same batch.
func (w *writes) queueSignals(b *batch) {
	var fresh, became []signalWrite
	for _, x := range w.signals {
		if x.New {
			fresh = append(fresh, x)
		} else {
			became = append(became, x)
		}
	}
	put := func(c *columns, x signalWrite) { c.uuid(x.GUID); c.uuid(x.job); c.text(string(x.State)) }
	write(b, "signals_put", fresh, put)
	write(b, "signals_became", became, func(c *columns, x signalWrite) { put(c, x); c.text(x.Reason) })
}
