package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/journal"
)

func TestGraphOfALoopWithJoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, diamond)
	w.instance("pivot", ",0,0", 1100000000002)
	for _, pass := range []collation.DAD{",0,0,0", ",0,1,0"} {
		w.instance("a", pass, 201100000000001).Code = 200
		w.instance("b", pass, 201100000000001).Code = 200
		w.instance("c", pass, 201100000000001).Code = 200
	}
	w.instance("b2", ",0,0,0,0", 201100000000001).Code = 402
	w.Instances[len(w.Instances)-2].Ledger = 1100000000000 // c, in its second pass
	w.instance("early", ",0,0,0", 201110200000001).Code = 200
	w.instance("early", ",0,1,0", 1110200000000)
	w.instance("merge", ",0,0,0", 201110300000001).Code = 200
	w.instance("merge", ",0,1,0", 10100000000)
	w.instance("again", ",0,0,0,0", 1100000000000)
	require.Equal(t, `
✓ start  trigger               done
✓ pivot  hook, pivot           done, 2 passes
├─ ✓ a   worker t.a            done, 2 passes
│  ├─ → early
│  └─ → merge
├─ ✓ b   worker t.b            done, 2 passes
│  ✗ b2  worker t.b            failed, code 402
│  └─ → early (skipped)
└─ ● c   worker t.c            waiting, 2 passes
   └─ → merge
● early  worker t.e, join any  waiting, 2 passes, 2/2 arrivals
└─ → merge
● merge  worker t.m, join all  waiting, 2 passes, 1/3 arrivals
✓ again  cycle ↩ pivot         done
`[1:], explain.Graph(&w.job, explain.Style{}))
	folded := explain.Graph(&w.job, explain.Style{Lines: 12})
	require.True(t, strings.HasSuffix(folded, "\n└─ → merge\n… and 2 more activities: 1 waiting, 1 done\n"), folded)
}

// 1.10: a transition to a skipped join was not taken, whatever its activity did.
func TestGraphOfASkippedJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, diamond)
	w.instance("pivot", ",0,0", 1100000000001)
	for _, name := range []string{"a", "b", "c"} {
		w.instance(name, ",0,0,0", 201100000000001).Code = 200
	}
	w.instance("early", ",0,0,0", 200000000)
	w.instance("merge", ",0,0,0", 300000000)
	drawn := explain.Graph(&w.job, explain.Style{})
	require.Equal(t, 2, strings.Count(drawn, "→ early (skipped)"), drawn)
	require.Equal(t, 3, strings.Count(drawn, "→ merge (skipped)"), drawn)
}

// Every state of an activity is drawn.
func TestGraphDrawsEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.instance("charge", ",0,0", 201100000000003).Code = 503
	w.request("items", "stock.reserve", 1)
	i := &w.Instances[len(w.Instances)-1].Instance
	i.Leg1, i.Open, i.Count = leg1, 7, 10
	w.waiting("nap")
	w.letter(w.timer(journal.MessageWakeUp, "nap", now+hour), "stuck", "refused")
	w.instance("review", ",0,0", 201100000000001).Code = 200
	w.waiting("feed").Ledger += 3
	w.row(journal.MessageLeg1, "bill")
	w.instance("merge", ",0,0", 10100000000)
	w.instance("pivot", ",0,0", 1100000000001)
	w.row(journal.MessageLeg1, "work").DAD = ",0,0,0"
	require.Equal(t, `
✓ start       trigger                     done
├─ ✗ charge   worker pay.charge           failed, code 503
│  ├─ → merge (skipped)
│  └─ ⊘ stop  interrupt, on error         skipped
├─ ● items    worker stock.reserve        waiting, 3/10 elements
│  └─ → merge
├─ ! nap      hook, timer                 stuck
│  └─ → merge
├─ ⊘ asked    hook order.asked            skipped
├─ ✓ review   hook order.reviewed, timer  done
├─ ● feed     hook feed.item              waiting, 3 passes
├─ ▶ bill     await                       running
├─ ⊘ fire     await                       skipped
└─ ✓ pivot    hook, pivot                 done, 1 pass
   ▶ work     worker pay.work             running
   ○ again    cycle ↩ pivot               not reached
● merge       worker pay.merge, join all  waiting, 1/3 arrivals
`[1:], explain.Graph(&w.job, explain.Style{}))

	w.State = journal.JobFailed
	text := explain.Graph(&w.job, explain.Style{})
	require.Contains(t, text, "◌ nap")
	require.Contains(t, text, "abandoned")
	require.Contains(t, explain.Graph(&w.job, explain.Style{Color: true}), "\x1b[31mfailed\x1b[0m, code 503")
}

// Deep, long and wide graphs are folded, and the count of what is left out is complete.
func TestGraphIsBounded(t *testing.T) {
	t.Parallel()
	var activities, transitions strings.Builder
	const deep, long = 30, 400
	for i := range deep { // each has two branches, one of which goes on
		fmt.Fprintf(&activities, "  d%d: {type: hook}\n  e%d: {type: hook}\n", i, i)
		fmt.Fprintf(&transitions, "  d%d: [e%d, d%d]\n", i, i, i+1)
	}
	fmt.Fprintf(&activities, "  d%d: {type: hook}\n", deep)
	for i := range long {
		fmt.Fprintf(&activities, "  l%d: {type: hook}\n", i)
		if i > 0 {
			fmt.Fprintf(&transitions, "  l%d: [l%d]\n", i-1, i)
		}
	}
	w := newWorld(t, "flow: big\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n"+activities.String()+
		"transitions:\n  start: [d0, l0]\n"+transitions.String())
	total := 1 + 2*deep + 1 + long
	for lines, want := range map[int]int{0: explain.MaxLines, 50: 50, 10_000: -1} {
		text := explain.Graph(&w.job, explain.Style{Lines: lines})
		drawn := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		last := drawn[len(drawn)-1]
		var more int
		_, err := fmt.Sscanf(last, "… and %d more activities", &more)
		require.NoError(t, err, last)
		require.Equal(t, total, len(drawn)-1+more)
		if want > 0 {
			require.Len(t, drawn, want+1)
		}
		for _, l := range drawn {
			require.Less(t, len([]rune(l)), 120)
		}
	}
	w.job.Flow = nil
	require.Empty(t, explain.Graph(&w.job, explain.Style{}))
}

func TestSurveyKnowsWhatIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.instance("charge", ",0,0", 201100000000001).Code = 200
	w.instance("items", ",0,0", 201100000000001).Code = 402
	w.instance("merge", ",0,0", 200000000)
	states := map[string]explain.State{}
	for _, s := range explain.Survey(&w.job) {
		states[s.Activity.Name] = s.State
	}
	require.Equal(t, explain.StateDone, states["charge"])
	require.Equal(t, explain.StateFailed, states["items"])
	require.Equal(t, explain.StateSkipped, states["stop"], "its parent ended without it")
	require.Equal(t, explain.StateWaiting, states["merge"])
	require.Equal(t, explain.StateSkipped, states["work"], "below a skipped one")
	require.Equal(t, explain.StateSkipped, states["nap"])

	w.instance("merge2", ",0,0", 0)
	w.Instances[3].Ledger = 300000000
	for _, s := range explain.Survey(&w.job) {
		if s.Activity.Name == "merge" {
			require.Equal(t, explain.StateSkipped, s.State, "all arrivals were skipped")
		}
	}
}
