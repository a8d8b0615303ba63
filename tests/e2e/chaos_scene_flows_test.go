//go:build chaos

package e2e

import "strings"

// sceneFlows are the flows of the scenes. TRIES is a policy that a fault does not
// use up; act does what its input says, and says it outside where it has a tick.
func sceneFlows() []string {
	tries := "retry: {attempts: 40, backoff: 50ms, max: 500ms}"
	out := make([]string, len(sceneTexts))
	for i, text := range sceneTexts {
		out[i] = strings.ReplaceAll(text, "TRIES", tries)
	}
	return out
}

var sceneTexts = []string{`
flow: raced
version: "1"
output: {by: "${ hook.by }", got: "${ hook.output }", late: "${ late.skipped }"}
activities:
  start: {type: trigger}
  hook:  {type: hook, signal: raced, key: "${ job.id }", sleep: "${ start.output.for }"}
  late:  {type: worker, topic: act, TRIES}
transitions: {start: [hook], hook: [{to: late, when: 'hook.by == "timer"'}]}
`, `
flow: feed
version: "1"
activities:
  start: {type: trigger}
  feed:  {type: hook, signal: fed, key: "${ job.id }", repeat: true}
  seen:  {type: worker, topic: act, input: {tick: "${ job.id }/${ feed.output }"}, TRIES}
  nap:   {type: hook, sleep: "${ start.output.nap }"}
transitions: {start: [feed], feed: [seen], seen: [nap]}
`, `
flow: poll
version: "1"
output: {n: "${ look.output.n }", pass: "${ pivot.output.at }"}
activities:
  start: {type: trigger}
  pivot: {type: hook, input: {at: 0}}
  look:  {type: worker, topic: act, input: {give: {n: "${ pivot.output.at + 1 }"}, tick: "${ job.id }/${ pivot.output.at }"}, TRIES}
  side:  {type: worker, topic: act, input: {give: "${ pivot.output.at }"}, TRIES}
  meet:  {type: hook, input: {n: "${ look.output.n }", side: "${ side.output }"}}
  nap:   {type: hook, sleep: "${ start.output.nap }"}
  again: {type: cycle, to: pivot, max: 6, input: {at: "${ meet.output.side == pivot.output.at ? meet.output.n : -1000 }"}}
transitions:
  start: [pivot]
  pivot: [look, side]
  look: [meet]
  side: [meet]
  meet: [{to: nap, when: "look.output.n < start.output.stop"}]
  nap: [again]
`, `
flow: joins
version: "1"
output: {sum: "${ sum.output }", first: "${ first.skipped }", late: "${ slow.code }", any: "${ any.code }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: act, input: {give: 1, ms: "${ start.output.a }"}, TRIES}
  b: {type: worker, topic: act, input: {fail: "no quote", ms: "${ start.output.b }"}, TRIES}
  sorry: {type: worker, topic: act, input: {give: 0}, TRIES}
  c: {type: worker, topic: act, input: {flaky: 2, give: 3}, TRIES}
  deep: {type: hook, sleep: "${ start.output.nap }"}
  slow: {type: worker, topic: act, within: 250ms, input: {give: 4, ms: "${ start.output.slow }"}, TRIES}
  never: {type: worker, topic: act}
  any: {type: worker, topic: act, join: any, input: {tick: "${ job.id }"}, TRIES}
  sum: {type: worker, topic: act, TRIES, input: {give: ["${ a.output }", "${ b.output }", "${ sorry.output }", "${ c.output }", "${ b.error.message }"]}}
  first: {type: worker, topic: act, join: any}
  end: {type: worker, topic: act, TRIES}
transitions:
  start: [a, b, c, slow, {to: never, when: "false"}]
  a: [sum, any]
  b: [sum, {to: sorry, on: error}, {to: any, on: error}]
  sorry: [sum]
  c: [deep, any]
  deep: [sum]
  slow: [end, {to: end, on: error}]
  never: [first, {to: first, on: error}]
  any: [end]
  sum: [end]
  first: [end]
`, eachText("fail", 1), eachText("fail", 3), eachText("collect", 2), eachText("collect", 100), `
flow: kid
version: "1"
input: {type: object, properties: {n: {type: number}}}
output: {n: "${ step.output }", key: "${ job.id }"}
activities:
  start: {type: trigger}
  nap:   {type: hook, sleep: "${ has(start.output.nap) ? start.output.nap : '0s' }"}
  step:  {type: worker, topic: act, TRIES, input: {give: "${ start.output.n }", fail: "${ start.output.n < 0 || (has(start.output.coin) && job.id.matches('[0-9]$')) ? 'negative' : '' }"}}
transitions: {start: [nap], nap: [step]}
`, `
flow: parent
version: "1"
output: {ok: "${ ok.output.n }", bad: "${ bad.error.message }", lucky: "${ lucky.output.n }", none: "${ none.code }", refused: "${ refused.code }", loose: "${ loose.output.id }", late: "${ late.code }", foreign: "${ foreign.code }"}
activities:
  start: {type: trigger}
  ok:      {type: await, flow: kid, input: {n: 5}, id: "${ job.id }.ok"}
  bad:     {type: await, flow: kid, input: {n: -5}, retry: {attempts: 3, backoff: 20ms}}
  lucky:   {type: await, flow: kid, input: {n: 7, coin: true}, retry: {attempts: 60, backoff: 10ms, max: 50ms}}
  none:    {type: await, flow: nowhere}
  refused: {type: await, flow: kid, input: {n: "text"}}
  loose:   {type: await, flow: kid, await: false, input: {n: 6}, id: "${ job.id }.loose"}
  late:    {type: await, flow: kid, within: 300ms, input: {n: 8, nap: "${ start.output.nap }"}}
  foreign: {type: await, flow: kid, id: "${ start.output.taken }", input: {n: 9}}
  meet:    {type: worker, topic: act, TRIES}
transitions:
  start: [ok, bad, lucky, none, refused, loose, late, foreign]
  ok: [meet]
  bad: [{to: meet, on: error}]
  lucky: [meet]
  none: [{to: meet, on: error}]
  refused: [{to: meet, on: error}]
  loose: [meet]
  late: [meet, {to: meet, on: error}]
  foreign: [{to: meet, on: error}]
`, `
flow: asker
version: "1"
output: "${ hook.output }"
activities:
  start: {type: trigger}
  hook:  {type: hook, signal: asked, key: "${ start.output.key }"}
transitions: {start: [hook]}
`, `
flow: teller
version: "1"
output: {told: "${ tell.output.id != '' }"}
activities:
  start: {type: trigger}
  tell:  {type: signal, topic: asked, key: "${ start.output.key }", payload: {from: "${ job.id }"}}
transitions: {start: [tell]}
`, `
flow: crier
version: "1"
output: {told: "${ tell.output.id != '' }"}
activities:
  start: {type: trigger}
  tell:  {type: signal, mode: all, topic: asked, key: "${ start.output.key }", payload: {from: "${ job.id }"}}
transitions: {start: [tell]}
`, `
flow: stop
version: "1"
output: {told: "${ tell.output.id != '' }"}
activities:
  start: {type: trigger}
  nap:   {type: hook, sleep: 24h}
  wait:  {type: hook, signal: never, key: "${ job.id }", within: 24h}
  items: {type: worker, topic: act, each: "[1, 2, 3, 4, 5, 6]", parallel: 2, input: {ms: 100}, TRIES}
  kid:   {type: await, flow: kid, input: {n: 1, nap: "${ start.output.kid }"}, retry: {attempts: 2}}
  turn:  {type: hook, input: {}}
  doze:  {type: hook, sleep: 5ms}
  again: {type: cycle, to: turn, max: 99999}
  tell:  {type: signal, topic: asked, key: "nobody-${ job.id }", payload: 1}
  rest:  {type: hook, sleep: "${ start.output.rest }"}
  loud:  {type: interrupt, code: 451, reason: "by ${ job.id }"}
  soft:  {type: interrupt, throw: false}
transitions:
  start: [nap, wait, items, kid, turn, tell]
  turn: [doze]
  doze: [again]
  tell: [rest]
  rest: [{to: loud, when: "start.output.loud"}, {to: soft, when: "!start.output.loud"}]
`, `
flow: tree
version: "1"
activities:
  start: {type: trigger}
  left:  {type: await, flow: tree, id: "${ job.id }.l", input: {depth: "${ start.output.depth - 1 }"}}
  right: {type: await, flow: tree, input: {depth: "${ start.output.depth - 1 }"}, retry: {attempts: 3, backoff: 10ms}}
  nap:   {type: hook, sleep: 24h}
  items: {type: worker, topic: act, each: "[1, 2, 3, 4, 5]", parallel: 2, input: {ms: 20, flaky: 1}, TRIES}
  feed:  {type: hook, signal: fed, key: "${ job.id }", repeat: true}
  turn:  {type: hook, input: {}}
  doze:  {type: hook, sleep: 20ms}
  again: {type: cycle, to: turn, max: 99999}
transitions:
  start: [nap, items, feed, turn, {to: left, when: "start.output.depth > 0"}, {to: right, when: "start.output.depth > 0"}]
  turn: [doze]
  doze: [again]
`, `
flow: walk
version: "1"
output: "${ d.output }"
activities:
  start: {type: trigger}
  a: {type: worker, topic: act, TRIES}
  b: {type: hook, sleep: 10ms}
  c: {type: await, flow: kid, input: {n: 1}}
  d: {type: worker, topic: act, input: {give: 1}, TRIES}
transitions: {start: [a], a: [b], b: [c], c: [d]}
`, `
flow: cancel
version: "1"
output: {code: "${ other.code }", found: "${ other.error == null }"}
activities:
  start: {type: trigger}
  other: {type: interrupt, target: "${ start.output.target }", code: 460, reason: "by ${ job.id }", descend: true}
  end:   {type: worker, topic: act, TRIES}
transitions: {start: [other], other: [end, {to: end, on: error}]}
`, `
flow: short
version: "1"
expire: 1s
output: {n: "${ start.output.n }", kid: "${ kid.output.n }"}
activities:
  start: {type: trigger}
  kid:   {type: await, flow: brief, input: {n: "${ start.output.n }"}}
  hook:  {type: hook, signal: shorts, key: "${ job.id }", sleep: "20ms"}
transitions: {start: [kid], kid: [hook]}
`, `
flow: brief
version: "1"
expire: 1s
output: {n: "${ step.output }"}
activities:
  start: {type: trigger}
  step:  {type: worker, topic: act, input: {give: "${ start.output.n }"}, TRIES}
transitions: {start: [step]}
`, `
flow: bound
version: "1"
output: "${ hook.output }"
activities:
  start: {type: trigger}
  hook:  {type: hook, signal: bounds, key: "${ job.id }", within: 400ms}
transitions: {start: [hook]}
`, `
flow: ward
version: "1"
output: {code: "${ kid.code }", why: "${ kid.error.message }"}
activities:
  start: {type: trigger}
  kid:   {type: await, flow: tree, id: "${ job.id }.kid", input: {depth: 1}}
  end:   {type: worker, topic: act, TRIES}
transitions: {start: [kid], kid: [{to: end, on: error}]}
`, `
flow: guard
version: "1"
output: {receipt: "${ guarded.output.receipt != '' }"}
activities:
  start:   {type: trigger}
  guarded: {type: worker, topic: guarded, input: {id: "${ job.id }"}, TRIES}
transitions: {start: [guarded]}
`}

// eachText is a flow of one worker with `each`.
func eachText(errors string, parallel int) string {
	return strings.NewReplacer("MODE", errors, "PAR", itoa(parallel)).Replace(`
flow: each_MODE_PAR
version: "1"
output: "${ items.output }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: act, each: start.output.lines, parallel: PAR, each_errors: MODE, TRIES, input: {fail: "${ item.fail }", flaky: "${ item.flaky }", give: "${ index }", ms: "${ item.ms }"}}
transitions: {start: [items]}
`)
}
