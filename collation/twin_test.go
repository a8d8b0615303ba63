package collation_test

import (
	"strconv"

	"github.com/quipu-journal/quipu/collation"
)

var activityMoves = map[string]func(collation.ActivityLedger) (collation.ActivityLedger, error){
	"enter": collation.ActivityLedger.EnterLeg1, "complete": collation.ActivityLedger.CompleteLeg1,
	"accept": collation.ActivityLedger.AcceptLeg2, "finalize": collation.ActivityLedger.Finalize,
	"preseed": collation.ActivityLedger.PreSeed,
	"take":    func(l collation.ActivityLedger) (collation.ActivityLedger, error) { return l.Arrive(true) },
	"skip":    func(l collation.ActivityLedger) (collation.ActivityLedger, error) { return l.Arrive(false) },
}

var guidMoves = map[string]func(collation.GUIDLedger) (collation.GUIDLedger, error){
	"step1": collation.GUIDLedger.SetStep1, "step2": collation.GUIDLedger.SetStep2,
	"closed": collation.GUIDLedger.SetClosed, "step3": collation.GUIDLedger.SetStep3,
}

// twin is a ledger as the rules draw it: 15 characters, position 1 first. It counts digit by
// digit, so that it shares no arithmetic with the code that it checks.
type twin string

// at returns the characters at the positions from…to, both included.
func (w twin) at(from, to int) string { return string(w[from-1 : to]) }

func (w twin) number(from, to int) int {
	n, err := strconv.Atoi(w.at(from, to))
	if err != nil {
		panic(err)
	}
	return n
}

// increment adds one to the positions from…to, unless they are full.
func (w twin) increment(from, to int) (twin, error) {
	b := []byte(w)
	for i := to - 1; i >= from-1; i-- {
		if b[i] != '9' {
			b[i]++
			return twin(b), nil
		}
		b[i] = '0'
	}
	return w, collation.ErrCeiling
}

func (w twin) set(position int, digit byte) twin {
	b := []byte(w)
	b[position-1] = digit
	return twin(b)
}

// activity does one operation on an activity ledger (1.2), or says why it is unlawful.
func (w twin) activity(op string) (twin, error) {
	switch state, complete := w.at(1, 1), w.at(4, 4); op {
	case "enter":
		if state == "0" && complete == "0" {
			return w.increment(2, 3)
		}
	case "complete":
		if complete == "0" && w.at(2, 3) != "00" {
			return w.set(4, '1'), nil
		}
	case "accept":
		if complete == "1" && state != "2" {
			return w.increment(8, 15)
		}
	case "preseed":
		if state == "0" && complete == "1" && w.at(8, 15) == "00000000" {
			return w.increment(8, 15)
		}
	case "take", "skip":
		after, err := w.increment(6, 7)
		if err == nil && op == "take" {
			after = after.set(5, '1')
		}
		return after, err
	case "finalize":
		if complete == "1" && state == "0" {
			return w.set(1, '2'), nil
		}
	}
	return w, collation.ErrDigit
}

// guid does one operation on a GUID ledger (1.3), or says why it is unlawful.
func (w twin) guid(op string) (twin, error) {
	switch w.at(4, 7) + " " + op {
	case "0000 step1":
		return w.set(5, '1'), nil
	case "0100 step2":
		return w.set(6, '1'), nil
	case "0110 closed":
		return w.set(4, '1'), nil
	case "1110 step3":
		return w.set(7, '1'), nil
	}
	return w, collation.ErrDigit
}

// grows compares group by group (C1, C4).
func (w twin) grows(after twin) bool {
	for _, g := range [][2]int{{1, 1}, {2, 3}, {4, 4}, {5, 5}, {6, 7}, {8, 15}} {
		if after.number(g[0], g[1]) < w.number(g[0], g[1]) {
			return false
		}
	}
	return true
}

func (w twin) guidGrows(after twin) bool {
	if w.at(8, 15) != after.at(8, 15) {
		return false
	}
	for p := 5; p <= 7; p++ {
		if after.number(p, p) < w.number(p, p) {
			return false
		}
	}
	return after.number(1, 4) >= w.number(1, 4)
}

// valid is the CHECK of an activity ledger (C4).
func (w twin) valid(join bool) bool {
	marker := func(p int) bool { return w[p-1] <= '1' }
	switch {
	case w[0] > '2' || !marker(4) || !marker(5):
		return false
	case w.at(4, 4) == "1" && w.at(2, 3) == "00":
		return false
	case w.at(1, 1) == "1" && w.at(2, 4) != "011":
		return false
	case w.at(1, 1) == "2" && w.at(4, 4) != "1":
		return false
	}
	return join || w.at(5, 7) == "000"
}

// guidValid is the CHECK of a GUID ledger (C4).
func (w twin) guidValid() bool {
	switch w.at(1, 3) + " " + w.at(4, 7) {
	case "000 0000", "000 0100", "000 0110", "000 1110", "000 1111":
		return true
	}
	return false
}
