package schema

import (
	"fmt"
	"math"
)

// MaxNesting bounds how many rules are applied within each other at one time. It is some fifty at
// each of the values that can be nested in each other.
const MaxNesting = 10_000

// ErrNesting says that more than MaxNesting rules were within each other.
var ErrNesting = fmt.Errorf("the schema applies more than %d rules within each other here: let it refer to itself only by way of "+
	"members or items", MaxNesting)

// Prices, in units. One unit is about 50 to 100 ns.
const (
	rulePrice    = 1  // of a rule at a value
	keepPrice    = 4  // of an outcome that is kept
	scopePrice   = 8  // of a scope that is new
	readSpan     = 16 // bytes that are taken apart for one unit, beside one for each value
	formSpan     = 64 // bytes that are compared, hashed or counted for one unit
	patternPrice = 2  // of a pattern, beside its steps
	stepSpan     = 12 // steps of a pattern for one unit
	largePrice   = 8  // of a comparison with large numbers
	digitSpan    = 12 // digits of large numbers for one unit
	formatSpan   = 4  // bytes of a text with a format for one unit
	uniquePrice  = 2  // of an item that is kept to be compared
	enumPrice    = 2  // of a value that is looked up in an enum
	flushAt      = 64 // units that are collected before they are spent
)

// evaluation is one check of a document.
type evaluation struct {
	document
	spend func(units int64) error
	owed  int64
	err   error // once it is set, every outcome is void

	kept    map[outcome]kept
	keepAll bool
	active  []active // by rule
	depth   int
	cycle   int    // the least depth of a rule under way that an outcome depends on
	base    *scope // nothing was entered
	scopes  int32
	machine machine
}

// outcome names what is kept: a rule at a value in a scope.
type outcome struct {
	rule   int32
	value  ref
	scope  int32
	marked bool
}

type kept struct {
	fits  bool
	marks *marks
}

// active is where a rule is under way: at the value, since that depth.
type active struct {
	value ref
	depth int
}

const never = math.MaxInt

// pay spends units before work is done. It reports whether the work may be done.
func (e *evaluation) pay(units int64) bool {
	if e.owed += units; e.owed >= flushAt {
		e.flush()
	}
	return e.err == nil
}

func (e *evaluation) flush() {
	if e.err == nil {
		e.err = e.spend(e.owed)
	}
	e.owed = 0
}

// apply reports whether a value fits a rule. into takes what was evaluated, if it fits.
func (e *evaluation) apply(r *rule, v ref, s *scope, into *marks) bool {
	if r.constant != 0 {
		return e.pay(rulePrice) && r.constant == accepts
	}
	if e.depth++; e.depth > MaxNesting && e.err == nil {
		e.err = ErrNesting
	}
	fits := false
	if s = e.enter(s, r); e.err == nil {
		if r.shared || e.keepAll && !r.leaf {
			fits = e.applyShared(r, v, s, into)
		} else {
			fits = e.check(r, v, s, into, nil)
		}
	}
	e.depth--
	return fits && e.err == nil
}

// applyShared keeps the outcome, unless it depends on a rule that is still under way. A rule that
// comes to itself at the same value does not fit there.
func (e *evaluation) applyShared(r *rule, v ref, s *scope, into *marks) bool {
	before := e.active[r.id]
	if before.depth > 0 && before.value == v {
		e.cycle = min(e.cycle, before.depth)
		e.pay(rulePrice)
		return false
	}
	if into != nil && into.all {
		into = nil
	}
	key := outcome{r.id, v, s.id, into != nil}
	if known, ok := e.kept[key]; ok {
		if !e.pay(rulePrice) {
			return false
		}
		if known.fits && into != nil && e.pay(int64(len(known.marks.many))/formSpan) {
			into.merge(known.marks)
		}
		return known.fits
	}
	outer := e.cycle
	e.cycle = never
	e.active[r.id] = active{v, e.depth}
	var found *marks
	price := int64(keepPrice)
	if into != nil {
		found = newMarks(e.values[v].count)
		price += words(e.values[v].count) / 4
	}
	fits := e.pay(price) && e.check(r, v, s, found, nil)
	e.active[r.id] = before
	if e.cycle >= e.depth && e.err == nil {
		e.kept[key] = kept{fits, found}
		e.cycle = outer
	}
	e.cycle = min(e.cycle, outer)
	if fits && into != nil {
		into.merge(found)
	}
	return fits
}

// check applies the keywords of a rule. found takes all problems; without it the first ends the
// check.
func (e *evaluation) check(r *rule, v ref, s *scope, into *marks, found *problems) bool {
	if !e.pay(rulePrice) {
		return false
	}
	c := checking{evaluation: e, rule: r, v: v, kind: e.kind(v), scope: s, found: found}
	if !c.plain() {
		return false
	}
	c.track(into)
	if r.ref != nil {
		c.here(r.ref)
	}
	switch {
	case c.kind == object && r.object != nil && !c.settled():
		c.objects(r.object)
	case c.kind == list && r.list != nil && !c.settled():
		c.lists(r.list)
	case c.kind == text && r.text != nil && !c.settled():
		c.texts(r.text)
	case c.kind == number && r.number != nil && !c.settled():
		c.numbers(r.number)
	}
	c.references()
	if r.logic != nil && !c.settled() {
		c.combinations(r.logic)
	}
	if c.marks != nil && !c.bad && c.err == nil {
		c.unevaluated()
		if into != nil {
			into.merge(c.marks)
		}
	}
	return !c.bad && c.err == nil
}

// checking is a rule at a value.
type checking struct {
	*evaluation
	rule  *rule
	v     ref
	kind  kind
	scope *scope
	marks *marks // nil: nobody asks what was evaluated
	bad   bool
	found *problems
}

// settled reports whether nothing that follows can matter.
func (c *checking) settled() bool { return c.err != nil || c.bad && c.found == nil }

// fail makes the value unfit. The message is made only if somebody asks.
func (c *checking) fail(message func() string) {
	c.bad = true
	if c.found != nil && c.err == nil {
		c.found.list = append(c.found.list, problem{message: message()})
	}
}

// track begins to note what is evaluated, if the caller or the rule itself asks.
func (c *checking) track(into *marks) {
	asked := into != nil && !into.all
	switch {
	case c.v < 0:
		return
	case c.kind == object:
		asked = asked || c.rule.object != nil && c.rule.object.unevaluated != nil
	case c.kind == list:
		asked = asked || c.rule.list != nil && c.rule.list.unevaluated != nil
	default:
		return
	}
	if count := c.values[c.v].count; asked && count > 0 && c.pay(words(count)/formSpan) {
		c.marks = newMarks(count)
	}
}

// here applies a rule to the same value.
func (c *checking) here(r *rule) bool {
	if c.apply(r, c.v, c.scope, c.marks) {
		return true
	}
	c.bad = true
	if c.found != nil && c.err == nil {
		c.found.list = append(c.found.list, problem{rule: r, v: c.v, scope: c.scope})
	}
	return false
}

// below applies a rule to a member or an item.
func (c *checking) below(r *rule, i uint32) {
	v := ref(c.values[c.v].first + i)
	if c.apply(r, v, c.scope, nil) {
		return
	}
	c.bad = true
	if c.found != nil && c.err == nil {
		c.found.list = append(c.found.list, problem{rule: r, v: v, scope: c.scope, index: int(i), below: c.kind})
	}
}

func (c *checking) references() {
	if r := c.rule.recursive; r != nil && !c.settled() {
		if c.rule.recursively && c.scope.recursive != nil {
			r = c.scope.recursive
		}
		c.here(r)
	}
	if r := c.rule.dynamic; r != nil && !c.settled() {
		if name := c.rule.dynamicName; name != "" {
			if outermost := c.scope.find(name); outermost != nil {
				r = outermost
			}
		}
		c.here(r)
	}
}

func (c *checking) combinations(l *logic) {
	if l.not != nil && c.apply(l.not, c.v, c.scope, nil) {
		c.fail(func() string { return "'not' failed" })
	}
	for _, r := range l.allOf {
		if c.settled() {
			return
		}
		c.here(r)
	}
	if len(l.anyOf) > 0 && !c.settled() {
		c.anyOf(l.anyOf)
	}
	if len(l.oneOf) > 0 && !c.settled() {
		c.oneOf(l.oneOf)
	}
	if l.test == nil || c.settled() {
		return
	}
	next := l.other
	if c.apply(l.test, c.v, c.scope, c.marks) {
		next = l.then
	}
	if next != nil && c.err == nil {
		c.here(next)
	}
}

func (c *checking) anyOf(rules []*rule) {
	matched := false
	for _, r := range rules {
		if c.err != nil {
			return
		}
		matched = c.apply(r, c.v, c.scope, c.marks) || matched
		if matched && (c.marks == nil || c.marks.all) {
			return // otherwise each that fits says what it evaluated
		}
	}
	if !matched {
		c.none(rules)
	}
}

func (c *checking) oneOf(rules []*rule) {
	matched := -1
	for i, r := range rules {
		switch {
		case c.err != nil:
			return
		case !c.apply(r, c.v, c.scope, c.marks):
		case matched >= 0:
			c.fail(func() string { return fmt.Sprintf("'oneOf' failed, subschemas %d, %d matched", matched, i) })
			return
		default:
			matched = i
		}
	}
	if matched < 0 {
		c.none(rules)
	}
}

// none says that none of the alternatives fits.
func (c *checking) none(rules []*rule) {
	c.bad = true
	if c.found != nil && c.err == nil {
		c.found.list = append(c.found.list, problem{choice: rules, v: c.v, scope: c.scope})
	}
}
