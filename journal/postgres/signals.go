package postgres

import (
	"bytes"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// mailbox is a mailbox that is read under its lock. Nobody else adds or ends waits of it, except
// jobs that cancel their own; the test-and-set of each wait finds that (J3).
type mailbox struct {
	collation.Box
	ask  int          // how many waits to read next
	last waitPosition // of the last wait that was read
}

// waitPosition is the place of a wait in its mailbox.
type waitPosition struct {
	since collation.Micros
	guid  journal.GUID
}

// mail is what is read of mailboxes.
type mail struct {
	boxes   []*mailbox // each once
	of      map[journal.JobID]*mailbox
	signals []rowKey // signals whose rows are wanted
	known   []rowKey // messages from outside
}

// askMail adds a mailbox. Each want of it is mostly one signal, and takes one wait.
func (m *mail) askMail(w *store.Want) {
	if w.Known != (collation.RowKey{}) {
		m.known = append(m.known, rowKey{w.Known.Job, w.Known.GUID})
	}
	if w.Box.IsZero() {
		return
	}
	box := m.of[w.Box]
	if box == nil {
		if m.of == nil {
			m.of = map[journal.JobID]*mailbox{}
		}
		box = &mailbox{Box: collation.Box{ID: w.Box, Named: map[journal.GUID]*collation.Row{}}}
		m.of[w.Box] = box
		m.boxes = append(m.boxes, box)
	}
	box.ask++
	if k := (rowKey{w.Box, w.Signal}); !w.Signal.IsZero() && !slices.Contains(m.signals, k) {
		m.signals = append(m.signals, k)
	}
}

// lockMail locks the mailboxes. Without wait it skips those that another transaction has locked;
// the next statements read only locked ones.
func (m *mail) lockMail(l *store.Loaded, wait bool) []step {
	if len(m.boxes) == 0 {
		return nil
	}
	slices.SortFunc(m.boxes, func(a, b *mailbox) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	ids := make([]journal.JobID, len(m.boxes))
	for i, box := range m.boxes {
		ids[i] = box.ID
		if wait {
			l.Boxes[box.ID] = &box.Box
		}
	}
	if wait {
		return []step{{"write_mailboxes", [][]byte{lockKeys(ids)}, nil}}
	}
	return []step{{"mail_lock_skip", [][]byte{lockKeys(ids)}, func(v row) error {
		for _, box := range m.boxes {
			if lockKey(box.ID) == v.int(0) {
				l.Boxes[box.ID] = &box.Box
			}
		}
		return nil
	}}}
}

// readMail returns the statements that read the mailboxes, and the records of signals.
func (m *mail) readMail(l *store.Loaded) (steps []step) {
	if len(m.known) > 0 {
		steps = append(steps, step{"signals_known", arrays(m.known, func(c *columns, k rowKey) {
			c.uuid(k.guid)
			c.uuid(k.job)
		}), func(v row) error {
			l.Know(collation.RowKey{Job: v.job(1), GUID: v.guid(0)}, store.SignalState(v.text(2)), v.text(3))
			return nil
		}})
	}
	if len(m.boxes) == 0 {
		return steps
	}
	due := append(arrays(m.boxes, func(c *columns, box *mailbox) {
		c.uuid(box.ID)
		c.int(lockKey(box.ID))
	}), pInt(collation.MaxDue))
	steps = append(steps, m.look(m.boxes...), step{"mail_due", due, func(v row) error {
		x, err := readRow(v)
		if err == nil {
			box := m.of[x.Job]
			box.Due = append(box.Due, x)
		}
		return err
	}})
	if len(m.signals) > 0 {
		named := arrays(m.signals, func(c *columns, k rowKey) { c.uuid(k.job); c.uuid(k.guid); c.int(lockKey(k.job)) })
		steps = append(steps, step{"mail_rows", named, func(v row) error {
			x, err := readRow(v)
			if err == nil {
				m.of[x.Job].Named[x.GUID] = x
			}
			return err
		}})
	}
	return steps
}

// look returns the step that reads the next waits of mailboxes.
func (m *mail) look(boxes ...*mailbox) step {
	asks := arrays(boxes, func(c *columns, box *mailbox) {
		c.uuid(box.ID)
		c.int(int64(box.last.since))
		c.uuid(box.last.guid)
		c.int(int64(box.ask))
		box.All = true // until as many come as were asked for, there may be more
	})
	return step{"mail_waits", asks, func(v row) error {
		box := m.of[v.job(waitWidth)]
		box.Waits = append(box.Waits, collation.BoxWait{
			Wait: *readWait(v), JobKey: v.text(waitWidth + 1), Generation: v.int(waitWidth + 2),
			Flow: v.flow(waitWidth + 3), Trace: v.text(waitWidth + 6),
		})
		w := &box.Waits[len(box.Waits)-1]
		box.last = waitPosition{w.Since, w.GUID}
		box.ask--
		box.All = box.ask > 0
		return nil
	}}
}
