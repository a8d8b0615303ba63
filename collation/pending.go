package collation

import (
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// ClassParked is the class of a parked response whose reason is an effect of
// unknown outcome.
const ClassParked = "parked"

// pending leaves the activity open: the request's row gets its next turn (C12,
// E7). A parked one waits for a person, with a dead letter (C16).
func (b *builder) pending() error {
	if b.m.Kind == journal.MessageOutcome {
		return b.retryChild()
	}
	if b.row == nil {
		return errBroken("a pending response without the row of its request")
	}
	row := *b.row
	row.Kind, row.Held, row.Dead = journal.MessageRequest, "", false
	row.Turn++
	row.Holder, row.LeaseUntil, row.Runs = "", Never, 0
	b.undead()
	switch {
	case b.response.Kind == journal.ResponseFailedTry:
		row.NextAt = b.s.Now + retryDelay(b.act.Retry, row.Try, b.response.RetryAfter, b.m.GUID)
		row.Try++
	case b.response.Kind == journal.ResponseParked && !b.parks():
		row.NextAt = b.s.Now // the outcome is known by now: run again and find it
	case b.response.Kind == journal.ResponseParked:
		row.NextAt = Never
		row.Held, row.Dead = HeldParked, true
		reason := "the outcome of an effect is unknown"
		if b.response.Error != nil {
			reason = b.response.Error.Message
		}
		b.p.Dead = append(b.p.Dead, b.deadLetter(HeldParked, reason))
	default:
		if err := b.suspend(&row); err != nil || !b.need.Empty() {
			return err
		}
	}
	b.update(row)
	b.p.Done = true
	return nil
}

// parks reports whether the effect that the response is parked for is still
// unfinished. Its late completion may have been recorded while the response was
// on its way, and then nothing else would ever unpark the row (E4).
func (b *builder) parks() bool {
	if b.row.Effects.Seq == 0 || b.response.Error == nil || b.response.Error.Class != ClassParked {
		return true
	}
	unfinished, asked := b.s.Unfinished[b.row.GUID]
	if !asked {
		b.need.Effects = append(b.need.Effects, b.row.GUID)
	}
	return unfinished
}

// elementKey is where the result of one element stands.
func elementKey(key InstanceKey, element int) InstanceKey {
	return InstanceKey{fmt.Sprintf("%s[%d]", key.Activity, element), key.DAD}
}
