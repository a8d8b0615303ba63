package work

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// node is a part of a random function. Its outcome depends on its name and on the earlier
// nodes, so that a wrong replay changes the result.
type node struct {
	kind string
	name string
	n    int
	subs [][]node // the branches of workers.All and workers.First, two lists of If, one of Loop
}

// program is a random function.
type program struct {
	body   []node
	names  int // of its nodes: n1, n2 …
	outer  *outside
	change change
}

// change is what differs in a changed program: what happens at the node of a name.
type change struct {
	name, how string
	other     node
}

// at are the nodes that stand for a node.
func (c *change) at(x node) []node {
	if x.name != c.name {
		return []node{x}
	}
	return map[string][]node{"insert": {c.other, x}, "delete": nil, "replace": {c.other}, "behind": {x, c.other}}[c.how]
}

func hash(parts ...any) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, parts...)
	return int(h.Sum32() % 9973)
}

func (p *program) run(ctx context.Context, in int) (int, error) { return p.list(ctx, p.body, in, "") }

// list runs nodes one after the other; loop distinguishes the passes of loops.
func (p *program) list(ctx context.Context, list []node, acc int, loop string) (int, error) {
	for _, planned := range list {
		for _, x := range p.change.at(planned) {
			v, err := p.node(ctx, x, acc, loop)
			if err != nil {
				return acc, err
			}
			acc = hash(acc, v)
		}
	}
	return acc, nil
}

func (p *program) node(ctx context.Context, x node, acc int, loop string) (int, error) {
	name := x.name + loop
	switch x.kind {
	case "call":
		return do(ctx, p.outer, x.name, hash(name, acc), effects.WithKey(name))
	case "args":
		return do(ctx, p.outer, x.name, hash(name, acc), effects.Args(name))
	case "pure":
		return do(ctx, p.outer, name, hash(name), effects.Pure)
	case "tx":
		return effects.DoTx(ctx, name, func(context.Context, any) (int, error) { return hash(name), nil })
	case "flaky": // some keys are refused, and the function goes on
		v, err := effects.Do(ctx, name, func(ctx context.Context) (int, error) {
			p.outer.called(ctx, name)
			if hash(effects.Key(ctx))%2 == 0 {
				return 0, effects.NotDone(fmt.Errorf("refused %s", name))
			}
			return hash(name), nil
		}, effects.Idempotent)
		if effects.IsNotDone(err) {
			return hash(err.Error()), nil
		}
		return v, err
	case "decline":
		_, err := effects.Do(ctx, name, func(context.Context) (int, error) {
			return 0, workers.Fail(402, name)
		}, effects.Idempotent)
		return hash(err.Error()), nil
	case "sleep":
		return 1, workers.Sleep(ctx, name, time.Duration(x.n)*time.Second)
	case "signal":
		v, err := workers.Await[int](ctx, x.name, time.Duration(x.n)*time.Second, workers.As(name))
		if err == workers.ErrAwaitTimeout {
			return 2, nil
		}
		return v, err
	case "again": // the same name in each pass of a loop: the branch must lose
		return workers.Await[int](ctx, x.name, 0)
	case "child":
		return workers.Child[int](ctx, name, "flow", acc)
	case "now":
		_, err := workers.Now(ctx)
		return 3, err
	case "version":
		return workers.Version(ctx, x.name, x.n)
	case "undo":
		return 4, workers.Compensate(ctx, name, func(ctx context.Context) error {
			p.outer.called(ctx, "undo "+name)
			return nil
		})
	case "fail":
		return 0, workers.Fail(409, name)
	case "break":
		return 0, fmt.Errorf("broken %s", name)
	}
	return p.compound(ctx, x, acc, loop)
}

func (p *program) compound(ctx context.Context, x node, acc int, loop string) (int, error) {
	branches := make([]func(context.Context) (int, error), len(x.subs))
	for i, list := range x.subs {
		branches[i] = func(ctx context.Context) (int, error) { return p.list(ctx, list, hash(acc, i), loop) }
	}
	switch x.kind {
	case "if":
		return branches[acc%2](ctx)
	case "loop":
		for i := range x.n {
			var err error
			if acc, err = p.list(ctx, x.subs[0], acc, fmt.Sprint(loop, "/", i)); err != nil {
				return 0, err
			}
		}
		return acc, nil
	case "first":
		i, v, err := workers.First(ctx, branches...)
		return hash(i, v), err
	}
	vs, err := workers.All(ctx, branches...)
	return hash(vs), err
}

// drawing draws programs.
type drawing struct {
	t     *rapid.T
	names int
	wild  bool // with parts that differ when they run again
}

func (d *drawing) list(depth, least, most int) []node {
	list := make([]node, 0, most)
	for range rapid.IntRange(least, most).Draw(d.t, "length") {
		list = append(list, d.node(depth))
	}
	return list
}

func (d *drawing) node(depth int) node {
	kinds := []string{"call", "args", "pure", "tx", "decline", "sleep", "sleep", "signal", "child", "now", "version", "undo"}
	if d.wild {
		kinds = append(kinds, "flaky")
	}
	if depth > 0 {
		kinds = append(kinds, "all", "all", "first", "if", "loop")
	}
	d.names++
	x := node{
		kind: rapid.SampledFrom(kinds).Draw(d.t, "kind"), name: fmt.Sprint("n", d.names), n: rapid.IntRange(1, 2).Draw(d.t, "n"),
	}
	switch x.kind {
	case "if":
		x.subs = [][]node{d.list(depth-1, 0, 2), d.list(depth-1, 0, 2)}
	case "loop":
		x.subs = [][]node{d.list(depth-1, 0, 2)}
	case "all":
		for range rapid.IntRange(0, 3).Draw(d.t, "branches") {
			x.subs = append(x.subs, d.list(depth-1, 0, 3))
		}
	case "first":
		for range rapid.IntRange(1, 3).Draw(d.t, "branches") {
			list := d.list(depth-1, 0, 2)
			if rapid.IntRange(0, 3).Draw(d.t, "again") == 0 {
				d.names++
				list = append([]node{{kind: "again", name: fmt.Sprint("n", d.names)}}, list...)
			}
			if !d.wild { // calls outside race anyway
				d.names++
				list = append([]node{{kind: "sleep", name: fmt.Sprint("n", d.names), n: 1}}, list...)
			}
			x.subs = append(x.subs, list)
		}
	}
	return x
}

// draw draws a program; some end with an error.
func draw(t *rapid.T, wild bool) *program {
	d := &drawing{t: t, wild: wild}
	p := &program{body: d.list(2, 1, 5), outer: &outside{}}
	if end := rapid.SampledFrom([]string{"", "", "fail", "break"}).Draw(t, "end"); end != "" {
		p.body = append(p.body, node{kind: end, name: "end"})
	}
	p.names = d.names
	return p
}

// fresh is the program with a new counter of calls.
func (p *program) fresh() *program { return &program{body: p.body, names: p.names, outer: &outside{}} }

// wakeOne ends one of the pauses: always the same of the same set.
func (w *world) wakeOne(pauses []string, by func(name string) int) {
	slices.SortFunc(pauses, func(a, b string) int { return cmp.Or(cmp.Compare(by(a), by(b)), cmp.Compare(a, b)) })
	w.bring(pauses[0])
}
