package model

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/flow"
)

// Every drawn plan is one that the interpreter can follow to its end, and one
// text gives one definition.
func TestGeneratedFlows(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t, worlds["mixed"])
		if p.much {
			seen["too much"]++
			return
		}
		for _, text := range p.flows {
			_, err := flow.Parse("flow.yaml", []byte(text))
			require.NoError(t, err, "%s", text)
			again := parse(text).yaml()
			require.Equal(t, again, parse(again).yaml(), "%s", text)
		}
		seen["plans"]++
		seen["vague"] += min(len(p.vague), 1)
		for _, o := range p.outcomes {
			require.False(t, o.forever, "%s", p.text())
			count(seen, o, p)
		}
	})
	for _, k := range sorted(seen) {
		t.Log(k, seen[k])
	}
}

func count(seen map[string]int, o *outcome, p *plan) {
	seen["jobs"]++
	d := p.def(o.flow)
	for e := range o.ends {
		seen["end "+e.state]++
	}
	for name, n := range o.runs {
		a := d.byName[name]
		seen["runs"] += n
		seen["runs of "+a.typ] += n
		if len(a.in) > 1 {
			seen["runs of joins"] += n
		}
		if a.passes {
			seen["passes of "+a.typ] += o.entries[name]
		}
	}
	for _, k := range o.kids {
		seen["kids"]++
		count(seen, k.outcome, p)
	}
}
