package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/journal"
)

// diamond has a join in a loop with one branch of two activities, and a join before that
// join.
const diamond = `
flow: diamond
version: "1"
activities:
  start: {type: trigger}
  pivot: {type: hook}
  a:     {type: worker, topic: t.a}
  b:     {type: worker, topic: t.b}
  b2:    {type: worker, topic: t.b}
  c:     {type: worker, topic: t.c}
  early: {type: worker, topic: t.e, join: any}
  merge: {type: worker, topic: t.m}
  again: {type: cycle, to: pivot}
transitions:
  start: [pivot]
  pivot: [a, b, c]
  a:     [early, merge]
  b:     [{to: b2, when: "b.output.more"}]
  b2:    [early]
  c:     [merge]
  early: [merge]
  merge: [again]
`

// 1.10: the missing arrivals of a join follow from the ledgers of its branches in the
// same pass.
func TestWhyNamesTheMissingArrivals_C13(t *testing.T) {
	t.Parallel()
	const done = 201100000000001
	pass := func(n string) collation.DAD { return collation.DAD(",0," + n + ",0") }
	for name, c := range map[string]struct {
		make func(w *world)
		text string
	}{
		"all but one": {
			func(w *world) {
				w.instance("a", pass("2"), done)
				w.instance("b", pass("2"), 1100000000000)
				w.instance("early", pass("2"), 201110100000001)
				w.instance("merge", pass("2"), 10200000000)
				w.instance("c", pass("2"), 1100000000000)
			}, "merge (pass 3) has 2 of 3 arrivals; missing are those of c",
		},
		"an earlier pass says nothing": {
			func(w *world) {
				w.instance("c", pass("1"), done)
				w.instance("a", pass("2"), done)
				w.instance("early", pass("2"), 201110100000001)
				w.instance("merge", pass("2"), 10200000000)
			}, "merge (pass 3) has 2 of 3 arrivals",
		},
		"a way that is long": {
			func(w *world) {
				w.instance("a", pass("2"), done)
				w.instance("b", pass("2"), 1100000000000)
				w.instance("early", pass("2"), 100000000)
				w.instance("merge", pass("2"), 10200000000)
				w.instance("c", pass("2"), done)
			}, "early (pass 3) has 1 of 2 arrivals, none of them taken; missing are those of b2",
		},
		"a branch on its way": {
			func(w *world) {
				w.instance("a", pass("2"), done)
				w.instance("b", pass("2"), done)
				w.instance("early", pass("2"), 201110200000001)
				w.instance("merge", pass("2"), 10200000000)
				r := w.row(journal.MessageLeg1, "c")
				r.DAD = pass("2")
			}, "merge (pass 3) has 2 of 3 arrivals; missing are those of c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, diamond)
			w.instance("pivot", ",0,0", 1100000000003)
			c.make(w)
			reasons := explain.Why(&w.job)
			var texts []string
			for _, r := range reasons {
				if r.Kind == explain.KindJoin {
					texts = append(texts, r.Text)
				}
			}
			require.Contains(t, texts, c.text)
		})
	}
}

// A join that waits for another join names it as missing.
func TestWhyNamesAJoinThatAJoinWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, diamond)
	w.instance("pivot", ",0,0", 1100000000001)
	w.instance("b", ",0,0,0", 1100000000000)
	w.instance("early", ",0,0,0", 100000000)
	w.instance("merge", ",0,0,0", 10200000000)
	w.instance("a", ",0,0,0", 201100000000001)
	w.instance("c", ",0,0,0", 201100000000001)
	r := w.row(journal.MessageRequest, "b")
	r.DAD, r.Turn, r.Attempt, r.TurnSent = ",0,0,0", 1, 1, 1
	reasons := explain.Why(&w.job)
	require.Len(t, reasons, 3)
	require.Equal(t, "early has 1 of 2 arrivals, none of them taken; missing are those of b2", reasons[1].Text)
	require.Equal(t, "merge has 2 of 3 arrivals; missing are those of early", reasons[2].Text)
}
