package schema

import "fmt"

func (c *checking) objects(o *objectRule) {
	v := &c.values[c.v]
	c.bounds("minProperties", "maxProperties", int(v.count), o.least, o.most)
	if len(o.required.list) > 0 && !c.settled() {
		if missing := c.missing(v, &o.required); len(missing) > 0 {
			c.fail(func() string { return lack(missing) })
		}
	}
	if o.perMember && !c.settled() {
		c.members(o, v)
	}
	if o.allEvaluated {
		c.marks.setAll()
	}
	for i := range v.count {
		if o.propertyNames == nil || c.settled() {
			break
		}
		c.name(o.propertyNames, ref(v.first+i))
	}
	for i := range o.dependents {
		if c.settled() {
			return
		}
		c.dependent(v, &o.dependents[i])
	}
}

// members applies what depends on the names of members.
func (c *checking) members(o *objectRule, v *value) {
	var additional []string
	for i := range v.count {
		if c.settled() {
			return
		}
		key := c.values[v.first+i]
		if !c.pay(1 + int64(key.keyTo-key.keyFrom)/formSpan) {
			return
		}
		name := c.key(ref(v.first + i))
		known := false
		if r := o.properties[name]; r != nil {
			known = true
			c.below(r, i)
		}
		for j := range o.patterns {
			if p := &o.patterns[j]; !c.settled() && c.matches(p.pattern, name) {
				known = true
				c.below(p.rule, i)
			}
		}
		switch {
		case known:
			c.marks.set(i)
		case c.settled():
		case o.additional != nil:
			c.below(o.additional, i)
		case o.closed && len(additional) == 0:
			c.bad = true
			additional = append(additional, name)
		case o.closed && len(additional) <= maxListed:
			additional = append(additional, name)
		}
	}
	if len(additional) > 0 {
		c.fail(func() string { return fmt.Sprintf("additional properties %s not allowed", quoteAll(additional)) })
	}
}

// name applies a rule to the key of a member. Nothing that was entered counts there.
func (c *checking) name(r *rule, member ref) {
	if !c.apply(r, ^member, c.base, nil) {
		c.fail(func() string { return fmt.Sprintf("invalid propertyName %s", quote(c.key(member))) })
	}
}

// dependent applies what the presence of a member asks for.
func (c *checking) dependent(v *value, d *dependent) {
	if len(c.missing(v, &names{list: []string{d.name}, bytes: int64(len(d.name))})) > 0 || c.err != nil {
		return
	}
	if d.rule != nil {
		c.here(d.rule)
		return
	}
	if missing := c.missing(v, &d.required); len(missing) > 0 {
		c.fail(func() string {
			return fmt.Sprintf("properties %s required, if %s exists", quoteAll(missing), quote(d.name))
		})
	}
}

func (c *checking) lists(l *listRule) {
	v := &c.values[c.v]
	c.bounds("minItems", "maxItems", int(v.count), l.least, l.most)
	if l.unique && v.count > 1 && !c.settled() {
		c.unique(v)
	}
	first := min(uint32(len(l.prefix)), v.count)
	for i := uint32(0); i < first && !c.settled(); i++ {
		c.below(l.prefix[i], i)
		c.marks.set(i)
	}
	if l.rest != nil {
		for i := first; i < v.count && !c.settled(); i++ {
			c.below(l.rest, i)
		}
	}
	if l.closed && first < v.count && !c.settled() {
		c.fail(func() string { return fmt.Sprintf("last %d additionalItem(s) not allowed", v.count-first) })
	}
	if l.allEvaluated {
		c.marks.setAll()
	}
	if l.contains != nil && !c.settled() {
		c.contains(l, v)
	}
}

// unique looks for two equal items, by their canonical forms.
func (c *checking) unique(v *value) {
	seen := make(map[string]uint32, min(v.count, 64))
	for i := range v.count {
		form := c.form(ref(v.first + i))
		if !c.pay(uniquePrice + int64(len(form))/formSpan) {
			return
		}
		if before, ok := seen[form]; ok {
			c.fail(func() string { return fmt.Sprintf("items at %d and %d are equal", before, i) })
			return
		}
		seen[form] = i
	}
}

func (c *checking) contains(l *listRule, v *value) {
	n := 0
	for i := range v.count {
		if c.apply(l.contains, ref(v.first+i), c.scope, nil) {
			n++
			if l.fitsEvaluate {
				c.marks.set(i)
			}
		}
		if c.err != nil {
			return
		}
		if l.mostFits == nil && c.marks == nil && n >= least(l.leastFits) {
			break
		}
	}
	switch {
	case n == 0 && l.leastFits == nil:
		c.fail(func() string { return "no items match contains schema" })
	case n < least(l.leastFits):
		c.fail(func() string {
			return fmt.Sprintf("min %d items required to match contains schema, but matched %d", *l.leastFits, n)
		})
	}
	if l.mostFits != nil && n > *l.mostFits {
		c.fail(func() string {
			return fmt.Sprintf("max %d items required to match contains schema, but matched %d", *l.mostFits, n)
		})
	}
}

// least is how many items must fit a contains.
func least(written *int) int {
	if written == nil {
		return 1
	}
	return *written
}

// unevaluated applies the rule for members or items that no keyword before has looked at.
func (c *checking) unevaluated() {
	var r *rule
	switch {
	case c.kind == object && c.rule.object != nil:
		r = c.rule.object.unevaluated
	case c.kind == list && c.rule.list != nil:
		r = c.rule.list.unevaluated
	}
	if r == nil {
		return
	}
	for i := range c.values[c.v].count {
		if c.settled() {
			return
		}
		if i%formSpan == 0 && !c.pay(1) {
			return
		}
		if !c.marks.has(i) {
			c.below(r, i)
		}
	}
	c.marks.setAll()
}
