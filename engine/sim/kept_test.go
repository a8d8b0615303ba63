package sim

import (
	"slices"
	"testing"
)

// keptSeed is a seed that once found a fault. A plain one was found when no world had features,
// and is played without them: with features it would be another world.
type keptSeed struct {
	seed  uint64
	plain bool
	found string
}

// kept are the seeds that are played in every run, by what they found. Changed code changes what
// happens in them, so they prove no repair; the package concerned has its own test. But they have
// reached states that few others reach.
var kept = []keptSeed{
	{31, true, "found with the first simulator"},
	{609, true, "found with the first simulator"},
	{1550, true, "found with the first simulator"},
	{2636, true, "found with the first simulator"},
	{2860, true, "found with the first simulator"},
	{2866, false, "C10: an error too large for a message of the bus was never answered; held by TestC10ErrorsFitTheSmallestMessages"},
	{2001377, false, "E1: a compensation in a job of its own saw that job's request, not its function's; held by TestACompensationSeesThePlaceOfItsFunction"},
	{2004890, false, "V12: an operator said that an effect was not done after its request had been answered; held by journaltest, Doubts"},
	{3001793, false, "I8: a wait made a signal due that was kept and not acked yet: as it should"},
	{5002892, false, "P31: of two runs of one request one failed while the other had a Guarded call outside, which the next attempt parked until it ended: as it should"},
	{1017555, false, "E3: a late message of a removed job ran the body of a Tx effect again, whose writes were refused: as it should"},
	{2542, false, "V12: an operator judged an effect whose request's answer was stuck; held by journaltest Doubts"},
	{4991, false, "E3: a request came after its job was removed, and the body ran of a Tx effect that had been committed; its own commit is refused: as it should"},
	{1109113, false, "I11: the operator went on to name an effect of a request whose answer was stuck, which is refused: as it should"},
	{1162186, false, "nothing: its last handlers outlived their processes, and with that the world"},
	{3004573, true, "P31: the timeout of an attempt cut a Guarded call, its answer was lost, and the next run parked it: as it should"},
}

// isPlain says that the seed is played without features.
func isPlain(seed uint64) bool {
	return slices.ContainsFunc(kept, func(k keptSeed) bool { return k.seed == seed && k.plain })
}

func isKept(seed uint64) bool {
	return slices.ContainsFunc(kept, func(k keptSeed) bool { return k.seed == seed })
}

// Faults that were found once are gone (6.4).
func TestKeptSeeds(t *testing.T) {
	if *oneSeed != 0 {
		t.Skip("one seed")
	}
	for _, k := range kept {
		if w := play(t, k.seed, false); len(w.wrongs) > 0 {
			t.Logf("seed %d: %s", k.seed, k.found)
			report(t, k.seed, w.wrongs)
		}
	}
}
