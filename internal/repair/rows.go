package repair

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// fixRow makes a dispatch row as the journal gives it. A row that stands keeps its publications,
// and its body if that has the sum of the entry.
func (x *Case) fixRow(g journal.GUID) string {
	r := x.job.Rows[g]
	stored, stands := x.tables.Rows[g]
	switch {
	case r == nil:
		x.Rows.Delete = append(x.Rows.Delete, g)
		return ""
	case !stands:
		row, why := x.row(g, r)
		if why == "" {
			x.Rows.Insert = append(x.Rows.Insert, row)
		}
		return why
	}
	body, why := x.body(g, r, &stored)
	if why != "" {
		return why
	}
	stored.Body = body
	x.shape(&stored, g, r)
	x.Rows.Update = append(x.Rows.Update, stored)
	return ""
}

// shape sets the columns that the journal tells.
func (x *Case) shape(row *collation.Row, g journal.GUID, r *replay.Row) {
	held := row.Held
	row.Kind, row.Activity, row.DAD, row.Element, row.Held = r.Kind, r.Activity, r.DAD, r.Element, r.Held
	row.Turn, row.Attempt, row.Pauses = r.Turn, r.Attempt, x.job.StoredPauses(r)
	if !r.Outside {
		row.Origin = r.Origin
	}
	row.Undo = r.Turn > 0 && x.job.Compensates(g)
	row.Dead = r.Held == collation.HeldStuck || r.Held == collation.HeldParked
	if held != r.Held && r.Held == "" {
		row.NextAt = x.now
	}
	if r.Asleep() {
		row.NextAt = collation.Never
	}
}

// body is the body of a row that stands: its own, or the input of a request made once more.
func (x *Case) body(g journal.GUID, r *replay.Row, stored *collation.Row) ([]byte, string) {
	switch {
	case r.Kind == journal.MessageRequest && journal.SumOf(stored.Body) != r.Input:
		made, why := x.row(g, r)
		return made.Body, why
	case r.Kind == journal.MessageAnswer && stored.Kind != r.Kind:
		if _, err := journal.DecodeResponse(stored.Body); err != nil {
			return nil, leftAnswer
		}
	}
	return stored.Body, ""
}

// row makes a row that does not stand. Its fence is higher than any that was given out, so that
// no run goes on that had the old one.
func (x *Case) row(g journal.GUID, r *replay.Row) (collation.Row, string) {
	row := collation.Row{
		GUID: g, Job: x.Stored.ID, Kind: r.Kind, Activity: r.Activity, DAD: r.DAD, Topic: r.Topic,
		NextAt: collation.Never,
	}
	switch {
	case r.Outside:
		return row, "the message came from outside: send it again, or restore the row from a backup"
	case r.Kind == journal.MessageAnswer && r.Turn > 0:
		return row, leftAnswer
	case r.Kind == journal.MessageLeg1 || r.Kind == journal.MessageStart:
	case r.Kind == journal.MessageWakeUp && x.pause(g) != nil:
		row.Body = journal.EncodeResponse(&journal.Response{
			Kind: journal.ResponseWake, Code: collation.CodeOK, By: journal.ByTimer, Request: x.pause(g).Request,
		})
	default:
		made, why := x.sent(g, r)
		if why != "" {
			return row, why
		}
		row = made
	}
	x.shape(&row, g, r)
	row.Publication, row.PublishedAt, row.TurnSent, row.Fence = 0, collation.Never, 0, int64(x.now)
	row.Effects = x.job.Chains[g]
	switch {
	case r.Asleep() || row.Dead:
		row.NextAt = collation.Never
	case r.Held == collation.HeldParallel:
		row.NextAt = x.now
	default:
		row.NextAt = max(x.now, collation.Micros(r.NextAt))
	}
	return row, ""
}

// pause is the pause of a function that a timer ends, nil for none.
func (x *Case) pause(g journal.GUID) *replay.Pause {
	for id, p := range x.job.Pauses {
		if id == g && p.Kind == journal.PauseSleep || p.Kind == journal.PauseSignal && journal.DeriveTimeout(id) == g {
			return p
		}
	}
	return nil
}

// sent makes the row that the Leg1 of its instance has sent, once more. The input of a request
// must have the sum that the entry says.
func (x *Case) sent(g journal.GUID, r *replay.Row) (collation.Row, string) {
	key := collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
	if r.Kind == journal.MessageCycle {
		for k, i := range x.job.Instances {
			if k.Activity == r.Topic && journal.DeriveCycle(i.Leg1) == g {
				key = k
			}
		}
	}
	i := x.job.Instances[key]
	if i == nil {
		return collation.Row{}, "no instance has sent it: restore the row from a backup"
	}
	p, err := x.again(key, i.Leg1)
	if err != nil {
		return collation.Row{}, err.Error()
	}
	n := slices.IndexFunc(p.Insert, func(row collation.Row) bool { return row.GUID == g })
	if n < 0 || r.Kind == journal.MessageRequest && journal.SumOf(p.Insert[n].Body) != r.Input {
		return collation.Row{}, "the flow gives another input than the one that was sent: restore the row from a backup"
	}
	return p.Insert[n], ""
}

// release makes what a run held due again: its answer may have come while the job was out of
// service. Nothing is written to a closed job.
func (x *Case) release() {
	if x.State != journal.JobOpen || x.Broken != "" {
		return
	}
	free := func(row *collation.Row) bool {
		r := x.job.Rows[row.GUID]
		if row.Held != "" || r != nil && r.Asleep() || row.Holder == "" && row.NextAt != collation.Never {
			return false
		}
		row.Holder, row.Session, row.NextAt, row.TurnSent = "", 0, x.now, 0
		row.Fence++
		return true
	}
	touched := map[journal.GUID]bool{}
	for i := range x.Rows.Update {
		free(&x.Rows.Update[i])
		touched[x.Rows.Update[i].GUID] = true
	}
	for _, g := range x.Rows.Delete {
		touched[g] = true
	}
	for g, row := range x.tables.Rows {
		if !touched[g] && free(&row) {
			x.Rows.Update = append(x.Rows.Update, row)
		}
	}
}
