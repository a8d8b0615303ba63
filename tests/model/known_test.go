package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// known are flows that once ended otherwise than they read.
var known = map[string]string{
	"C11: what woke a hook is its result's, too, where the steps commit apart": head + `
output: {by: "${ h.by }", v: "${ h.output.v }"}
activities: {start: {type: trigger}, h: {type: hook, sleep: 1s, output: {v: 1}}}
transitions: {start: [h]}`,
	"1.10: an error that arrives at a join which has run completes the job": head + `
activities:
  start: {type: trigger}
  a: {type: worker, topic: work}
  b: {type: worker, topic: work, input: {code: 404, fail: 1}}
  j: {type: worker, topic: work, join: any}
transitions: {start: [a, b], a: [j], b: [{to: j, on: error}]}`,
	"1.10: such a join's job fails where its output does": head + `
output: {broken: "${ start.output.none }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: work}
  b: {type: worker, topic: work, input: {code: 404, fail: 1}}
  j: {type: worker, topic: work, join: any}
transitions: {start: [a, b], a: [j], b: [{to: j, on: error}]}`,
	"C15: a pass that fails the job ends no obligation of its own": head + `
activities:
  start: {type: trigger}
  h: {type: hook, signal: topic.two, key: "${ job.id }/two/h", repeat: true, output: {v: "${ h.output.none }"}}
  side: {type: hook, sleep: 20s}
transitions: {start: [h, side]}`,
	"P15: signal and timer at the same moment": head + `
activities:
  start: {type: trigger}
  h: {type: hook, signal: topic.race, key: "${ job.id }/race/h", sleep: 1s, output: {v: 1}}
  w: {type: worker, topic: work}
transitions: {start: [h], h: [w]}`,
}

func TestKnownFlows(t *testing.T) {
	t.Parallel()
	for name, text := range known {
		for world, modes := range worlds {
			t.Run(name+"/"+world, func(t *testing.T) {
				t.Parallel()
				p := &plan{flows: append([]string{text}, standing...), world: faults{Engines: modes}}
				for v := range 3 {
					p.inputs = append(p.inputs, map[string]any{"v": v})
				}
				p.expect()
				require.Empty(t, play(t, p))
			})
		}
	}
}
