package engine

import (
	"slices"

	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// describe names an item at a fault point.
func describe(it item) string {
	b := it.about()
	return b.Name + " " + b.Activity
}

// entry is that of a decided message; nil: there is none.
func (d *decision) entry() *journal.Entry {
	if d.plan == nil || d.fate != fateCommit && d.fate != fateRepeat {
		return nil
	}
	return d.plan.Entry
}

// entering passes the fault points before the commit of a batch.
func entering(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, d := range b.decisions {
		if d.fate == fateCommit && d.item.about().Name == callStart {
			fault.At(fault.K0, callStart)
		}
	}
	for _, d := range b.decisions {
		e := d.entry()
		switch {
		case e == nil || !slices.Contains(e.Marks, journal.MarkEntered):
		case e.Kind == journal.KindLeg1:
			fault.At(fault.K1, describe(d.item))
		case e.Kind == journal.KindLeg2:
			fault.At(fault.K10, describe(d.item))
		}
	}
}

// committed passes the fault points after the commit of a batch, before anything is published.
func committed(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, d := range b.decisions {
		e := d.entry()
		if e == nil || len(e.Marks) == 0 {
			continue
		}
		last := e.Marks[len(e.Marks)-1]
		switch {
		case e.Kind == journal.KindLeg1 && last == journal.MarkEntered:
			fault.At(fault.K2, describe(d.item))
		case e.Kind == journal.KindLeg1 && last == journal.MarkWork:
			fault.At(fault.K3, describe(d.item))
		case e.Kind != journal.KindLeg2:
		case last == journal.MarkEntered:
			fault.At(fault.K11, describe(d.item))
		case last == journal.MarkWork:
			fault.At(fault.K12, describe(d.item))
		case last == journal.MarkChildren:
			fault.At(fault.K13, describe(d.item))
		case last == journal.MarkClosed:
			fault.At(fault.K14, describe(d.item))
		case last == journal.MarkTasks:
			fault.At(fault.K15, describe(d.item))
		}
	}
}

// published passes the fault point between a publish and its PubAcks.
func published(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, d := range b.decisions {
		if e := d.entry(); e != nil && e.Kind == journal.KindLeg1 && len(d.plan.Insert) > 0 {
			fault.At(fault.K4, describe(d.item))
		}
	}
}

// acking passes the fault point before a Leg1 message is acked.
func acking(m *message) {
	if fault.Enabled && m.plan != nil && m.plan.Entry != nil && m.plan.Entry.Kind == journal.KindLeg1 {
		fault.At(fault.K5, describe(m))
	}
}

// losing passes the fault point before any ack, with the message's hint.
func losing(d transport.Delivery) {
	if fault.Enabled && d.Err() == nil {
		fault.At(fault.K16, string(d.Message().Body))
	}
}
