package collation

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// Weights of the digit groups (1.2, 1.3).
const (
	unitState    = 100_000_000_000_000 // position 1
	unitLeg1     = 1_000_000_000_000   // positions 2–3
	unitComplete = 100_000_000_000     // position 4: Leg1 complete; GUID: snapshot
	unitTaken    = 10_000_000_000      // position 5: join taken; GUID: step 1
	unitArrivals = 100_000_000         // positions 6–7: arrivals
	unitStep2    = 1_000_000_000       // GUID, position 6
	unitStep3    = 100_000_000         // GUID, position 7
)

// Ceilings of the counters (C4). From StuckLeg1 on only an operator may let a Leg1 enter again.
const (
	MaxLeg1     = 99
	StuckLeg1   = 90
	MaxArrivals = 99
	MaxLeg2     = 99_999_999
)

// ErrCeiling says that a counter is full: its instance is stuck (C4).
var ErrCeiling = errors.New("ledger counter at its ceiling")

// ErrDigit says that a digit change breaks the laws C1–C4, so the state behind it is broken.
var ErrDigit = errors.New("unlawful digit change")

// ActivityLedger is the ledger of one instance (1.2).
type ActivityLedger journal.Ledger

// TriggerBorn is the ledger of a trigger right after the inception (1.11).
const TriggerBorn ActivityLedger = 101_100_000_000_001

// String returns the 15 digits.
func (l ActivityLedger) String() string { return journal.Ledger(l).String() }

// State is position 1: 0 active, 1 trigger, 2 finalized.
func (l ActivityLedger) State() int { return int(l / unitState) }

// Finalized reports whether no further Leg2 message is accepted.
func (l ActivityLedger) Finalized() bool { return l.State() == 2 }

// Leg1Entries is positions 2–3.
func (l ActivityLedger) Leg1Entries() int { return int(l / unitLeg1 % 100) }

// Leg1Complete is position 4.
func (l ActivityLedger) Leg1Complete() bool { return l/unitComplete%10 == 1 }

// JoinTaken is position 5.
func (l ActivityLedger) JoinTaken() bool { return l/unitTaken%10 == 1 }

// Arrivals is positions 6–7.
func (l ActivityLedger) Arrivals() int { return int(l / unitArrivals % 100) }

// Join is the ledger with nothing but what arrivals count: positions 5–7.
func (l ActivityLedger) Join() ActivityLedger { return l % unitComplete / unitArrivals * unitArrivals }

// Leg2Entries is positions 8–15.
func (l ActivityLedger) Leg2Entries() int { return int(l % unitArrivals) }

// EnterLeg1 counts one entry into Leg1 (1.6).
func (l ActivityLedger) EnterLeg1() (ActivityLedger, error) {
	switch {
	case l.Leg1Complete() || l.State() != 0:
		return l, fmt.Errorf("%w: Leg1 entered again after it was complete, ledger %s", ErrDigit, l)
	case l.Leg1Entries() >= MaxLeg1:
		return l, fmt.Errorf("%w: %d Leg1 entries, ledger %s", ErrCeiling, l.Leg1Entries(), l)
	}
	return l + unitLeg1, nil
}

// CompleteLeg1 sets position 4 (+100B, 1.6).
func (l ActivityLedger) CompleteLeg1() (ActivityLedger, error) {
	if l.Leg1Complete() || l.Leg1Entries() == 0 {
		return l, fmt.Errorf("%w: Leg1 completed out of turn, ledger %s", ErrDigit, l)
	}
	return l + unitComplete, nil
}

// PreSeed counts the first pass of a pivot, which its Leg1 makes. The first re-entry then has
// ordinal 2 and index 1 (1.11).
func (l ActivityLedger) PreSeed() (ActivityLedger, error) {
	if l.State() != 0 || !l.Leg1Complete() || l.Leg2Entries() != 0 {
		return l, fmt.Errorf("%w: pre-seeded out of turn, ledger %s", ErrDigit, l)
	}
	return l + 1, nil
}

// Arrive counts one arrival at a join (1.10); the first taken one sets
// position 5.
func (l ActivityLedger) Arrive(taken bool) (ActivityLedger, error) {
	if l.Arrivals() >= MaxArrivals {
		return l, fmt.Errorf("%w: %d arrivals, ledger %s", ErrCeiling, l.Arrivals(), l)
	}
	if taken && !l.JoinTaken() {
		l += unitTaken
	}
	return l + unitArrivals, nil
}

// AcceptLeg2 counts one accepted Leg2 message; its ordinal is the new count
// (1.7, C6).
func (l ActivityLedger) AcceptLeg2() (ActivityLedger, error) {
	switch {
	case !l.Leg1Complete() || l.Finalized():
		return l, fmt.Errorf("%w: Leg2 accepted out of turn, ledger %s", ErrDigit, l)
	case l.Leg2Entries() >= MaxLeg2:
		return l, fmt.Errorf("%w: %d Leg2 entries, ledger %s", ErrCeiling, l.Leg2Entries(), l)
	}
	return l + 1, nil
}

// Finalize sets position 1 to 2 (+200T): the activity has ended (1.7).
func (l ActivityLedger) Finalize() (ActivityLedger, error) {
	if l.State() != 0 || !l.Leg1Complete() {
		return l, fmt.Errorf("%w: finalized out of turn, ledger %s", ErrDigit, l)
	}
	return l + 2*unitState, nil
}

// Valid checks the laws that every single activity ledger obeys (C4). join says whether
// positions 5–7 may be used.
func (l ActivityLedger) Valid(join bool) error {
	bad := func(what string) error { return fmt.Errorf("%w: %s, ledger %s", ErrDigit, what, l) }
	switch {
	case l < 0 || journal.Ledger(l) >= journal.MaxLedger:
		return fmt.Errorf("%w: %d does not fit into 15 digits", ErrDigit, int64(l))
	case l.State() > 2:
		return bad("position 1 is over 2")
	case l/unitComplete%10 > 1 || l/unitTaken%10 > 1:
		return bad("a marker digit is over 1")
	case l.Leg1Complete() && l.Leg1Entries() == 0:
		return bad("Leg1 complete without an entry")
	case l.State() == 1 && (l.Leg1Entries() != 1 || !l.Leg1Complete()):
		return bad("a trigger without its one complete Leg1")
	case l.Finalized() && !l.Leg1Complete():
		return bad("finalized without Leg1")
	case !join && (l.JoinTaken() || l.Arrivals() != 0):
		return bad("join digits on an activity that is no join")
	}
	return nil
}

// Grows reports whether no digit group of after is smaller than in l. It catches a carry out of
// a group, which an addition alone does not show (C1, C4).
func (l ActivityLedger) Grows(after ActivityLedger) bool {
	return after.State() >= l.State() && after.Leg1Entries() >= l.Leg1Entries() &&
		after/unitComplete%10 >= l/unitComplete%10 && after/unitTaken%10 >= l/unitTaken%10 &&
		after.Arrivals() >= l.Arrivals() && after.Leg2Entries() >= l.Leg2Entries()
}

// GUIDLedger is the ledger of one message, kept in its receipt (1.3).
type GUIDLedger journal.Ledger

// StartBorn is the ledger of a start message after its job's inception (1.11).
const StartBorn GUIDLedger = unitTaken

// Accepted is a new GUID ledger that holds only the ordinal.
func Accepted(ordinal int) GUIDLedger { return GUIDLedger(ordinal) }

// String returns the 15 digits.
func (l GUIDLedger) String() string { return journal.Ledger(l).String() }

// Closed is position 4: this message closed the job.
func (l GUIDLedger) Closed() bool { return l/unitComplete%10 == 1 }

// Step1 is position 5: work done.
func (l GUIDLedger) Step1() bool { return l/unitTaken%10 == 1 }

// Step2 is position 6: children dispatched, semaphore moved.
func (l GUIDLedger) Step2() bool { return l/unitStep2%10 == 1 }

// Step3 is position 7: the job's completion tasks are done.
func (l GUIDLedger) Step3() bool { return l/unitStep3%10 == 1 }

// Ordinal is positions 8–15: the activity's Leg2 count at acceptance (C6).
func (l GUIDLedger) Ordinal() int { return int(l % unitStep3) }

// Complete reports whether no step is left. Step 3 is due only in the message that closed the
// job.
func (l GUIDLedger) Complete() bool { return l.Step2() && (!l.Closed() || l.Step3()) }

// SetStep1 sets position 5 (+10B).
func (l GUIDLedger) SetStep1() (GUIDLedger, error) {
	return l.set(unitTaken, !l.Step1() && !l.Step2())
}

// SetStep2 sets position 6 (+1B).
func (l GUIDLedger) SetStep2() (GUIDLedger, error) {
	return l.set(unitStep2, l.Step1() && !l.Step2())
}

// SetClosed sets position 4 (+100B), together with step 2.
func (l GUIDLedger) SetClosed() (GUIDLedger, error) {
	return l.set(unitComplete, l.Step2() && !l.Closed())
}

// SetStep3 sets position 7 (+100M).
func (l GUIDLedger) SetStep3() (GUIDLedger, error) {
	return l.set(unitStep3, l.Closed() && !l.Step3())
}

func (l GUIDLedger) set(unit GUIDLedger, lawful bool) (GUIDLedger, error) {
	if !lawful {
		return l, fmt.Errorf("%w: marker %d on GUID ledger %s", ErrDigit, int64(unit), l)
	}
	return l + unit, nil
}

// Valid checks the laws that every single GUID ledger obeys (C4).
func (l GUIDLedger) Valid() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s, GUID ledger %s", ErrDigit, what, l) }
	switch {
	case l < 0 || l >= 10*unitComplete:
		return fmt.Errorf("%w: %d uses positions 1–3 of a GUID ledger", ErrDigit, int64(l))
	case l/unitComplete > 1 || l/unitTaken%10 > 1 || l/unitStep2%10 > 1 || l/unitStep3%10 > 1:
		return bad("a marker digit is over 1")
	case l.Step2() && !l.Step1():
		return bad("step 2 without step 1")
	case l.Closed() && !l.Step2():
		return bad("snapshot without step 2")
	case l.Step3() && !l.Closed():
		return bad("step 3 without the snapshot")
	}
	return nil
}

// Grows reports whether after has all markers of l and the same ordinal.
func (l GUIDLedger) Grows(after GUIDLedger) bool {
	return after.Ordinal() == l.Ordinal() && after/unitComplete >= l/unitComplete &&
		after/unitTaken%10 >= l/unitTaken%10 && after/unitStep2%10 >= l/unitStep2%10 &&
		after/unitStep3%10 >= l/unitStep3%10
}
