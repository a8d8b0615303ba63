package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// plan is what the jobs of a seed are.
type plan struct {
	*book
	main, kid  string // names of flows: of the jobs, and of their children
	interrupts bool
}

// book holds flows, compiled.
type book struct {
	number   uint64
	content  content
	source   *memstore.Store // of engines that do not read the flows themselves
	texts    []string
	refs     map[string]journal.FlowRef
	compiled *engine.Flows
}

const version = "1"

// share is how many seeds have the same flows: compiling them costs as much as
// running them.
const share = 8

// last is the book of the seed before. Runs are one after another.
var last *book

// drawPlan draws the flows of a seed, unless the seed before had the same.
func drawPlan(seed uint64) *plan {
	n := seed / share
	p := &plan{main: fmt.Sprintf("m%d", n), kid: fmt.Sprintf("k%d", n), interrupts: seed%5 == 0}
	if c := drawContent(seed); last == nil || last.number != n || last.content != c {
		last = &book{number: n, content: c, source: memstore.New(memstore.Config{}), refs: map[string]journal.FlowRef{}}
		last.compiled = engine.NewFlows(last.source)
		dice := rand.New(rand.NewPCG(n, 1)) //nolint:gosec // it must be repeatable
		most := []int{3, 6, 9}[dice.IntN(3)]
		if c.small {
			most = 1 + dice.IntN(3)
		}
		last.draw(dice, p.kid, 2, "")
		last.draw(dice, p.main, most, p.kid)
		f, err := flow.Undo(topicDurable)
		last.add(f, err)
	}
	p.book = last
	return p
}

// draw draws a flow until it is legal.
func (b *book) draw(dice *rand.Rand, name string, most int, kid string) {
	for {
		g := &gen{dice: dice, kid: kid, content: b.content}
		text := g.flow(name, 1+dice.IntN(most))
		f, err := flow.Parse(name+".yaml", []byte(text))
		if err != nil {
			continue
		}
		b.texts = append(b.texts, text)
		b.add(f, nil)
		return
	}
}

// add adds a flow that is legal.
func (b *book) add(f *flow.Flow, err error) {
	if err == nil {
		ref := collation.RefOf(f)
		b.refs[ref.Name] = ref
		_, err = b.source.Deploy(context.Background(),
			store.Deployment{Ref: ref, Canonical: f.Canonical(), Activate: true})
	}
	if err == nil {
		_, err = b.compiled.Get(context.Background(), b.refs[f.Name()])
	}
	if err == nil && !flow.IsBuiltin(f.Name()) { // whether its version is known must not depend on the seeds before
		_, _, err = b.compiled.Resolve(context.Background(), f.Name(), "")
	}
	if err != nil {
		panic(err)
	}
}

// gen draws one flow.
type gen struct {
	dice *rand.Rand
	kid  string
	content
	acts  []string // lines
	open  []parent // activities that others may follow
	moves map[string][]string
	order []string // of the moves
}

// parent is an activity that may have successors.
type parent struct {
	name  string
	fails bool
}

func (g *gen) chance(percent int) bool { return g.dice.IntN(100) < percent }

func (g *gen) pick(of ...string) string { return of[g.dice.IntN(len(of))] }

func (g *gen) add(name, line string) { g.acts = append(g.acts, "  "+name+": {"+line+"}") }

func (g *gen) move(from, to string) {
	if g.moves[from] == nil {
		g.order = append(g.order, from)
	}
	g.moves[from] = append(g.moves[from], to)
}

// flow returns the text of a flow of about n activities.
func (g *gen) flow(name string, n int) string {
	g.moves = map[string][]string{}
	g.add("start", "type: trigger")
	g.open = []parent{{name: "start"}}
	if g.flurry && g.kid != "" {
		g.attach("f", `type: hook, signal: tell, key: "${ job.id }-f", repeat: true`, false, false)
		g.open = []parent{{name: "f"}} // a following activity shows the address of the pass
	}
	for i := range n {
		g.grow(fmt.Sprintf("a%d", i+1))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "flow: %s\nversion: %q\n", name, version)
	if g.expire {
		fmt.Fprintf(&b, "expire: %s\n", g.pick("1s", "2s", "9s"))
	}
	fmt.Fprintf(&b, "output: {v: \"${ start.output.v }\"}\nactivities:\n%s\ntransitions:\n", strings.Join(g.acts, "\n"))
	for _, from := range g.order {
		fmt.Fprintf(&b, "  %s: [%s]\n", from, strings.Join(g.moves[from], ", "))
	}
	return b.String()
}

// grow adds an activity.
func (g *gen) grow(name string) {
	x := g.dice.IntN(100)
	switch {
	case x < 28:
		g.worker(name)
	case x < 43:
		g.function(name)
	case x < 48:
		g.bodies(name)
	case x < 56:
		g.attach(name, "type: hook, sleep: "+g.pick("1ms", "300ms", "2s", "7s"), false, true)
	case x < 66:
		g.signal(name)
	case x < 76:
		g.await(name)
	case x < 84:
		g.cycle(name)
	case x < 88:
		g.attach(name, `type: signal, topic: tell, key: "`+g.pick("${ job.id }", "any")+`"`+g.pick("", ", mode: all"), false, true)
	case x < 91:
		g.interrupt(name)
	default:
		g.attach(name, "type: hook, input: 1", false, true)
	}
}

// attach adds an activity after one or two others.
func (g *gen) attach(name, line string, fails, goesOn bool) {
	parents := 1
	if len(g.open) > 1 && g.chance(40) {
		parents = 2
	}
	seen := map[string]bool{}
	for range parents {
		p := g.open[max(0, len(g.open)-1-g.dice.IntN(4))]
		if seen[p.name] {
			continue
		}
		seen[p.name] = true
		switch {
		case p.fails && g.chance(50):
			g.move(p.name, "{to: "+name+", on: error}")
		case g.chance(15):
			g.move(p.name, "{to: "+name+`, when: "start.output.v % 2 == 0"}`)
		default:
			g.move(p.name, name)
		}
	}
	if len(seen) > 1 && g.chance(40) {
		line += ", join: any"
	}
	g.add(name, line)
	if goesOn {
		g.open = append(g.open, parent{name, fails})
	}
}

// worker adds a worker with a pure body and effects.
func (g *gen) worker(name string) {
	fail, how, extra := 0, "error", ""
	if g.chance(35) {
		fail, how = 1+g.dice.IntN(4), g.pick("error", "retry", "panic", "fatal", "hang")
		if g.large && g.chance(30) {
			how = "verbose"
		}
	}
	var list []string
	for i := range g.dice.IntN(4) {
		list = append(list, fmt.Sprintf("{name: e%d, class: %s, how: %q}", i, g.pick(g.classes()...), g.pick("", "", "", "notdone", "refused", "slow")))
	}
	n := "1"
	if g.chance(25) {
		extra = fmt.Sprintf(", each: start.output.list, parallel: %d, each_errors: %s", 1+g.dice.IntN(3), g.pick("fail", "collect"))
		n = `"${ item }"`
	}
	if how == "hang" || g.chance(20) {
		extra += ", timeout: " + g.pick("600ms", "2500ms")
	}
	if g.chance(15) {
		extra += ", within: " + g.pick("1s", "6s")
	}
	g.attach(name, fmt.Sprintf("type: worker, topic: %s, input: {n: %s, fail: %d, how: %s, effects: [%s]%s}, retry: {attempts: %d, backoff: %s}%s",
		topicWork, n, fail, how, strings.Join(list, ", "), g.pads(), 1+g.dice.IntN(4), g.pick("10ms", "400ms", "2s"), extra), true, true)
}

// pads makes the input or output of a worker too large for a message.
func (g *gen) pads() (more string) {
	if g.large && g.chance(40) {
		more += `, pad: "` + strings.Repeat("i", large) + `"`
	}
	if g.large && g.chance(40) {
		more += fmt.Sprintf(", big: %d", large)
	}
	return more
}

// classes are those of the effects of workers.
func (g *gen) classes() []string {
	if g.bank {
		return []string{"idempotent", "guarded", "tx", "tx", "pure"}
	}
	return []string{"idempotent", "guarded", "pure"}
}

// bodies adds a worker whose body is one effect.
func (g *gen) bodies(name string) {
	g.attach(name, "type: worker, topic: "+g.pick(topicGuarded, topicIdempotent)+", retry: {attempts: 3, backoff: 100ms}", true, true)
}

// signal adds a hook that waits for a signal, with or without a timer.
func (g *gen) signal(name string) {
	line := `type: hook, signal: tell, key: "` + g.pick("${ job.id }", "${ job.id }-"+name, "any") + `"`
	switch g.dice.IntN(5) {
	case 0:
		line += ", within: " + g.pick("500ms", "4s")
	case 1, 2:
		line += ", sleep: " + g.pick("200ms", "900ms", "3s")
	case 3:
		line += ", repeat: true"
	}
	g.attach(name, line, true, true)
}

// await adds an await of the child's flow, or of a missing one.
func (g *gen) await(name string) {
	if g.kid == "" {
		g.worker(name)
		return
	}
	line := "type: await, flow: " + g.kid + `, input: {list: [1, 2], v: "${ start.output.v }"}`
	switch g.dice.IntN(5) {
	case 0:
		line += ", await: false"
	case 1:
		line += ", within: " + g.pick("300ms", "5s")
	case 2:
		line += ", retry: {attempts: 2, backoff: 300ms}"
	case 3:
		line += `, id: "kid-of-${ job.id }"`
	}
	g.attach(name, line, true, true)
}

// cycle adds a loop of a few passes around a worker.
func (g *gen) cycle(name string) {
	pivot, body, again := name+"p", name+"b", name+"c"
	g.attach(pivot, "type: hook, input: {n: 1}", false, false)
	g.move(pivot, body)
	g.add(body, fmt.Sprintf(`type: worker, topic: %s, input: {n: "${ %s.output.n }", fail: 0, how: error, effects: [{name: e, class: idempotent, how: ""}]}`, topicWork, pivot))
	most := 2 + g.dice.IntN(2)
	g.move(body, fmt.Sprintf(`{to: %s, when: "%s.output.n < %d"}`, again, pivot, most))
	g.move(body, fmt.Sprintf(`{to: %s, when: "%s.output.n >= %d"}`, name, pivot, most))
	g.add(again, fmt.Sprintf(`type: cycle, to: %s, max: 5, input: {n: "${ %s.output.n + 1 }"}`, pivot, pivot))
	g.add(name, "type: hook, input: 2")
	if g.chance(30) {
		g.open = append(g.open, parent{name: name})
	}
}

// interrupt adds the end of the job itself, or of another.
func (g *gen) interrupt(name string) {
	g.attach(name, "type: interrupt"+g.pick("", ", throw: false", ", descend: true", ", target: job-1", `, target: "kid-of-${ job.id }"`), false, false)
}
