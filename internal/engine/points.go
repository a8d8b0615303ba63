package engine

import (
	"slices"

	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// about names the message at a fault point.
func (it *item) describe() string { return string(it.msg.Kind) + " " + it.msg.Activity }

// entering passes the fault points before the commit of a batch.
func entering(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, x := range b.calls {
		if x.name == callStart {
			fault.At(fault.K0, callStart)
		}
	}
	for _, it := range b.decided {
		e := it.plan.Entry
		switch {
		case e == nil || !slices.Contains(e.Marks, journal.MarkEntered):
		case e.Kind == journal.KindLeg1:
			fault.At(fault.K1, it.describe())
		case e.Kind == journal.KindLeg2:
			fault.At(fault.K10, it.describe())
		}
	}
}

// committed passes the fault points after the commit of a batch, before anything is published.
func committed(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, it := range b.decided {
		e := it.plan.Entry
		if e == nil || len(e.Marks) == 0 {
			continue
		}
		last := e.Marks[len(e.Marks)-1]
		switch {
		case e.Kind == journal.KindLeg1 && last == journal.MarkEntered:
			fault.At(fault.K2, it.describe())
		case e.Kind == journal.KindLeg1 && last == journal.MarkWork:
			fault.At(fault.K3, it.describe())
		case e.Kind != journal.KindLeg2:
		case last == journal.MarkEntered:
			fault.At(fault.K11, it.describe())
		case last == journal.MarkWork:
			fault.At(fault.K12, it.describe())
		case last == journal.MarkChildren:
			fault.At(fault.K13, it.describe())
		case last == journal.MarkClosed:
			fault.At(fault.K14, it.describe())
		case last == journal.MarkTasks:
			fault.At(fault.K15, it.describe())
		}
	}
}

// published passes the fault point between a publish and its PubAcks.
func published(b *batch) {
	if !fault.Enabled {
		return
	}
	for _, it := range b.decided {
		if e := it.plan.Entry; e != nil && e.Kind == journal.KindLeg1 && len(it.plan.Insert) > 0 {
			fault.At(fault.K4, it.describe())
		}
	}
}

// acking passes the fault point before a Leg1 message is acked.
func acking(it *item) {
	if e := it.plan.Entry; fault.Enabled && e != nil && e.Kind == journal.KindLeg1 {
		fault.At(fault.K5, it.describe())
	}
}

// losing passes the fault point before any ack, with the message's hint.
func losing(d transport.Delivery) {
	if fault.Enabled && d.Err() == nil {
		fault.At(fault.K16, string(d.Message().Body))
	}
}
