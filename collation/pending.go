package collation

import "github.com/quipu-journal/quipu/journal"

// ClassParked is the class of a parked response whose reason is an effect of
// unknown outcome.
const ClassParked = "parked"

// Classes of parked responses with other reasons. The dead letter has the class as its reason,
// so that an operator's action on it is not taken for an answer about an effect that the dead
// letter does not ask about (E10).
const (
	ClassNondeterminism = "nondeterminism" // the path differs from the recorded one (E15)
	ClassUndo           = "undo"           // a compensation that fails (3.5)
	ClassConfirm        = "confirm"        // an effect that its verifier does not confirm (3.3)
	ClassMisfit         = "result_misfit"  // a recorded result that its handler cannot read
)

// parkedFor is the reason of the dead letter of a parked response.
func parkedFor(r *journal.Response) string {
	if r.Error != nil {
		switch r.Error.Class {
		case ClassNondeterminism, ClassUndo, ClassConfirm, ClassMisfit:
			return r.Error.Class
		}
	}
	return HeldParked
}

// pending leaves the activity open: the request's row gets its next turn (C12, E7). A parked
// request waits for a person, with a dead letter (C16).
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
	row.letGo()
	row.Runs = 0
	b.resolve()
	switch {
	case b.response.Kind == journal.ResponseFailedAttempt:
		row.NextAt = b.s.Now + retryDelay(b.act.Retry, row.Attempt, b.response.RetryAfter, b.m.GUID)
		row.Attempt++
	case b.response.Kind == journal.ResponseParked:
		parks, err := b.parks()
		if err != nil {
			return err
		}
		if !parks {
			row.NextAt = b.s.Now // the outcome is known by now: the next run finds it
			break
		}
		row.NextAt = Never
		reason := "the outcome of an effect is unknown"
		if b.response.Error != nil {
			reason = b.response.Error.Message
		}
		b.hold(&row, HeldParked, parkedFor(b.response), reason)
	default:
		if err := b.suspend(&row); err != nil {
			return err
		}
	}
	b.change(row, true)
	b.p.Done = true
	return nil
}

// parks reports whether the effect that the response is parked for is still unfinished. Its
// completion may have been recorded while the response was on its way; nothing else would
// unpark the row then (E4).
func (b *builder) parks() (bool, error) {
	if b.row.Effects.Seq == 0 || b.response.Error == nil || b.response.Error.Class != ClassParked {
		return true, nil
	}
	return read(b, b.s.Unfinished, b.row.GUID, &b.need.Effects)
}
