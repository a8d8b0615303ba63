package replay_test

import (
	"testing"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// passLies are about pivots, cycles and elements.
var passLies = map[string]lie{
	"V4 no pre-seed": {straight, replay.V4, 3, "position 1 (state) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(3).Ledger--
	}},
	"V4 a pre-seed of two": {straight, replay.V4, 3, "the entry allows +2", func(main func(int) *journal.Entry) {
		main(3).Ledger++
	}},
	"V4 a pre-seed of what is no pivot": {raced, replay.V4, 4, "positions 8–15 (Leg2 entries) goes 0 → 1", func(main func(int) *journal.Entry) {
		main(4).Ledger++
	}},
	"V4 a pivot finalized by its Leg1": {straight, replay.V4, 3, "position 1 (state) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(3).Ledger += finalized
	}},
	"V4 a pivot finalized by a cycle": {bent, replay.V4, 7, "position 1 (state) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(7).Ledger += finalized
	}},
	"V4 steps without a receipt": {raced, replay.V4, 4, "does not move", func(main func(int) *journal.Entry) { main(4).Receipt = 0 }},
	"V4 steps without a result":  {raced, replay.V4, 4, "but no result", func(main func(int) *journal.Entry) { main(4).Result = nil }},
	"V4 a step of category B": {raced, replay.V4, 4, "position 6 (step 2) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(4).Receipt -= oneB
		main(4).Ended = journal.GUID{}
	}},
	"V4 category B not finalized": {raced, replay.V4, 4, "position 1 (state) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(4).Ledger -= finalized
	}},
	"V4 an element ends the activity": {listed, replay.V4, 4, "position 1 (state) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(4).Ledger += finalized
	}},
	"V5 a pre-seed that does not count": {bent, replay.V5, 7, "are 1, the next of p ,0,0 is 2", func(main func(int) *journal.Entry) {
		main(7).Receipt--
	}},
	"V5 an element's ordinal": {listed, replay.V5, 6, "are 4, the next of w ,0,0 is 3", func(main func(int) *journal.Entry) {
		main(6).Receipt++
	}},
	"V5 an ordinal of category B": {raced, replay.V5, 4, "counts no Leg2 entry", func(main func(int) *journal.Entry) {
		main(4).Receipt++
	}},
	"V6 a cycle's Leg1 moves the semaphore": {twice, replay.V6, 6, "marks [entered work] moves", func(main func(int) *journal.Entry) {
		main(6).Semaphore = main(2).Semaphore
	}},
	"V6 a pass that ends nothing": {twice, replay.V6, 7, "an obligation ended: true ask for +0", func(main func(int) *journal.Entry) {
		*main(7).Semaphore = 2
	}},
	"V6 a signal's pass ends an obligation": {ticked, replay.V6, 4, "an obligation ended: false ask for +1", func(main func(int) *journal.Entry) {
		*main(4).Semaphore = 1
	}},
	"V6 two elements end at once": {listed, replay.V6, 4, "the open ones go 3 → 1", func(main func(int) *journal.Entry) {
		*main(4).Open = 1
	}},
	"V6 an end that is not counted": {listed, replay.V6, 6, "does not say how many are open", func(main func(int) *journal.Entry) { main(6).Open = nil }},
	"V6 a failed attempt ends an element": {listed, replay.V6, 5, "but no element ends", func(main func(int) *journal.Entry) {
		main(5).Open = main(6).Open
	}},
	"V6 elements that are not open": {listed, replay.V6, 3, "and 2 of them are left", func(main func(int) *journal.Entry) { main(3).Open = main(4).Open }},
	"V6 no element sent": {listed, replay.V6, 3, "0 of them sent", func(main func(int) *journal.Entry) {
		main(3).Elements.Parallel = 0
		main(4).Updated = nil
	}},
	"V6 nothing gathered": {listed, replay.V6, 7, "nothing is gathered", func(main func(int) *journal.Entry) { main(7).Result = nil }},
	"V10 another element released": {listed, replay.V10, 4, "element 1, is updated; due is element 2", func(main func(int) *journal.Entry) {
		main(4).Updated[0].GUID = main(5).Updated[0].GUID
	}},
	"V10 an element released again": {listed, replay.V10, 6, "element 1, is updated; due is element 3", func(main func(int) *journal.Entry) {
		main(6).Updated = main(5).Updated
	}},
	"V11 another element's response": {listed, replay.V11, 4, "that of element 2", func(main func(int) *journal.Entry) {
		main(4).Response.Element = 2
	}},
	"V11 an element without a request": {raced, replay.V11, 5, "but answers no request", func(main func(int) *journal.Entry) {
		main(5).Response.Element = 1
	}},
	"V11 a cycle of another Leg1": {bent, replay.V11, 6, "does not derive from message", func(main func(int) *journal.Entry) {
		g := journal.GUID{1, 2}
		main(6).Dispatched[0].GUID, main(7).GUID, main(7).Ended = g, g, g
	}},
	"V11 a cycle of another activity": {bent, replay.V11, 6, "is that of c, it says x", func(main func(int) *journal.Entry) {
		main(6).Dispatched[0].Topic = "x"
	}},
	"V11 a pass at another address": {twice, replay.V11, 11, "another place than below ,0,2", func(main func(int) *journal.Entry) {
		d := &main(11).Dispatched[0]
		d.DAD = ",0,1,0"
		d.GUID = collation.Leg1GUID(main(11).GUID, d.Activity, ",0,1,0")
		main(12).GUID, main(12).Ended = d.GUID, d.GUID
	}},
	"V11 accepted elsewhere": {stepped, replay.V11, 6, "it was accepted by w1", func(main func(int) *journal.Entry) {
		main(6).Activity = "w2"
	}},
	"V12 an open element gives a result": {listed, replay.V12, 4, "open gives it a result", func(main func(int) *journal.Entry) {
		main(4).Result = &journal.Result{Code: 200}
	}},
}

// joinLies are about arrivals and joins.
var joinLies = map[string]lie{
	"V4 an arrival taken back": {joined, replay.V4, 6, "positions 6–7 (arrivals) goes 1 → 0", func(main func(int) *journal.Entry) {
		main(6).Joins[0].After = 0
	}},
	"V4 an arrival forgotten": {joined, replay.V4, 8, "positions 6–7 (arrivals) goes 3 → 2", func(main func(int) *journal.Entry) {
		main(8).Ledger -= hundredM
	}},
	"V4 an arrival that no entry tells": {joined, replay.V4, 7, "positions 6–7 (arrivals) grow by 2, the entry says 1", func(main func(int) *journal.Entry) {
		main(6).Joins = nil
	}},
	"V4 an arrival that is no arrival": {joined, replay.V4, 6, "positions 6–7 (arrivals) grow by 1, the entry says 2", func(main func(int) *journal.Entry) {
		main(6).Joins[0].Arrivals++
	}},
	"V4 taken without an arrival": {joined, replay.V4, 6, "position 5 (join taken) goes 0 → 1", func(main func(int) *journal.Entry) {
		main(6).Joins[0].After -= hundredM
		main(6).Joins[0].Arrivals = 0
	}},
	"V4 taken twice": {joined, replay.V4, 7, "a marker digit is over 1", func(main func(int) *journal.Entry) {
		main(7).Joins[0].After += tenB
		main(8).Ledger += tenB
		main(9).Ledger += tenB
	}},
	"V4 an arrival by what decides nothing": {joined, replay.V4, 5, "positions 6–7 (arrivals) goes 1 → 2", func(main func(int) *journal.Entry) {
		m := main(4).Joins[0]
		m.After, m.Arrivals = m.After+hundredM, 1
		main(5).Joins = append(main(5).Joins, m)
	}},
	"V11 a join nobody took": {joined, replay.V11, 7, "no arrival at the join was taken", func(main func(int) *journal.Entry) {
		for seq := 6; seq <= 7; seq++ {
			main(seq).Joins[0].After -= tenB
		}
		for seq := 8; seq <= 9; seq++ {
			main(seq).Ledger -= tenB
		}
	}},
	"V11 a join of its parent": {joined, replay.V11, 7, "does not derive from the join's address", func(main func(int) *journal.Entry) {
		g := collation.Leg1GUID(main(7).GUID, "j", ",0,0,0")
		main(7).Dispatched[0].GUID, main(8).GUID, main(8).Ended = g, g, g
	}},
	"V11 a join of nobody": {joined, replay.V11, 4, "does not derive from message", func(main func(int) *journal.Entry) {
		main(4).Dispatched[1].GUID[0] ^= 1
		main(6).GUID, main(6).Ended = main(4).Dispatched[1].GUID, main(4).Dispatched[1].GUID
	}},
	"V11 a Leg1 by what decides nothing": {oneListed, replay.V11, 4, "decides no transition", func(main func(int) *journal.Entry) {
		g := collation.Leg1GUID(main(4).GUID, "w", ",0,0,0")
		main(4).Dispatched = []journal.Dispatched{{GUID: g, Kind: journal.MessageLeg1, Activity: "w", DAD: ",0,0,0"}}
		*main(4).Semaphore++
	}},
}

// TestLiesAboutPassesAndJoins: exactly one check finds each lie about activities that go round
// or meet (2.5, J11).
func TestLiesAboutPassesAndJoins(t *testing.T) {
	t.Parallel()
	requireLies(t, passLies, joinLies)
}
