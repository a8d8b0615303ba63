package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// URL names the schema within itself; nothing is fetched.
const URL = "quipu:///input"

// noLoader refuses to fetch schemas: a flow is complete in itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema refers to nothing outside itself, %.200s is not fetched", url)
}

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	root  *rule
	rules int
}

// Compile compiles a schema, canonical JSON. It bounds the patterns; the number of rules is the
// caller's to bound, because the library takes its square. Errors are those of the library.
func Compile(canonicalJSON []byte) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(canonicalJSON))
	if err != nil {
		return nil, err
	}
	b := &builder{known: map[*jsonschema.Schema]*rule{}, resources: map[*jsonschema.Schema]*resource{}}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		p, err := b.patterns.compile(text)
		if err != nil {
			return nil, err // no typed nil
		}
		return p, nil
	})
	if err := compiler.AddResource(URL, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(URL)
	if err != nil {
		return nil, err
	}
	return b.schema(compiled)
}

// builder turns what the library compiled into rules.
type builder struct {
	patterns  patterns
	known     map[*jsonschema.Schema]*rule
	uses      []int // of a rule, by its id
	queue     []*jsonschema.Schema
	resources map[*jsonschema.Schema]*resource
	asked     map[string]bool // names of dynamic anchors
	recursive bool
	err       error
}

func (b *builder) schema(root *jsonschema.Schema) (*Schema, error) {
	s := &Schema{root: b.rule(root)}
	for i := 0; i < len(b.queue); i++ {
		b.fill(b.known[b.queue[i]], b.queue[i])
	}
	for _, r := range b.resources {
		maps.DeleteFunc(r.anchors, func(name string, _ *rule) bool { return !b.asked[name] })
	}
	for _, r := range b.known {
		everywhere := b.recursive && r.resource != nil && r.resource.recursive // $recursiveRef can mean any of these
		r.shared = (b.uses[r.id] > 1 || everywhere) && !r.leaf
		if r.resource != nil && len(r.resource.anchors) == 0 && !everywhere {
			r.resource = nil
		}
	}
	s.rules = len(b.queue)
	return s, b.err
}

// rule is the rule of a schema, which is filled later.
func (b *builder) rule(s *jsonschema.Schema) *rule {
	if s == nil {
		return nil
	}
	r, ok := b.known[s]
	if !ok {
		r = &rule{id: int32(len(b.queue))}
		b.known[s] = r
		b.queue = append(b.queue, s)
		b.uses = append(b.uses, 0)
	}
	b.uses[r.id]++
	return r
}

func (b *builder) all(list []*jsonschema.Schema) []*rule {
	rules := make([]*rule, len(list))
	for i, s := range list {
		rules[i] = b.rule(s)
	}
	return rules
}

// open is a rule, or what true and false say in place of one.
func (b *builder) open(s any) (r *rule, closed, present bool) {
	switch s := s.(type) {
	case bool:
		return nil, !s, true
	case *jsonschema.Schema:
		return b.rule(s), false, true
	}
	return nil, false, false
}

func (b *builder) fill(r *rule, s *jsonschema.Schema) {
	if s.Bool != nil {
		r.constant, r.leaf = refuses, true
		if *s.Bool {
			r.constant = accepts
		}
		return
	}
	if s.DraftVersion >= 2019 {
		r.resource = b.resource(s)
	}
	b.values(r, s)
	r.ref = b.rule(s.Ref)
	if s.DraftVersion < 2019 && s.Ref != nil {
		return // what stands beside a reference was ignored then
	}
	if s.RecursiveRef != nil {
		r.recursive, r.recursively = b.rule(s.RecursiveRef), s.RecursiveRef.RecursiveAnchor
		b.recursive = b.recursive || r.recursively
		b.uses[r.recursive.id]++ // it comes at every depth
	}
	if d := s.DynamicRef; d != nil {
		r.dynamic = b.rule(d.Ref)
		if d.Anchor != "" && d.Ref.DynamicAnchor == d.Anchor {
			r.dynamicName = d.Anchor
			if b.asked == nil {
				b.asked = map[string]bool{}
			}
			b.asked[d.Anchor] = true
		}
	}
	if s.Not != nil || len(s.AllOf) > 0 || len(s.AnyOf) > 0 || len(s.OneOf) > 0 || s.If != nil {
		r.logic = &logic{
			not: b.rule(s.Not), allOf: b.all(s.AllOf), anyOf: b.all(s.AnyOf), oneOf: b.all(s.OneOf),
			test: b.rule(s.If), then: b.rule(s.Then), other: b.rule(s.Else),
		}
	}
	r.object, r.list = b.object(s), b.list(s)
	r.leaf = r.ref == nil && r.recursive == nil && r.dynamic == nil && r.logic == nil && r.object.leaf() &&
		r.list.leaf()
}

// values are the keywords without rules.
func (b *builder) values(r *rule, s *jsonschema.Schema) {
	if s.Types != nil && !s.Types.IsEmpty() {
		wanted := s.Types.ToStrings()
		r.typesText = strings.Join(wanted, " or ")
		for k := null; k <= object; k++ {
			if slices.Contains(wanted, k.String()) {
				r.types |= 1 << k
			}
		}
		if slices.Contains(wanted, "integer") {
			r.types |= 1 << integer
		}
	}
	if s.Const != nil {
		form, err := canonical.Marshal(*s.Const)
		b.err = errors.Join(b.err, err)
		r.fixed = &fixed{form: string(form)}
	}
	if s.Enum != nil {
		r.enum = b.enum(s.Enum.Values)
	}
	r.format = s.Format
	if s.MinLength != nil || s.MaxLength != nil || s.Pattern != nil {
		r.text = &textRule{least: s.MinLength, most: s.MaxLength}
		r.text.pattern, _ = s.Pattern.(*Pattern)
	}
	n := numberRule{
		least: newLimit(s.Minimum), most: newLimit(s.Maximum), above: newLimit(s.ExclusiveMinimum),
		below: newLimit(s.ExclusiveMaximum), multiple: newLimit(s.MultipleOf),
	}
	if n != (numberRule{}) {
		r.number = &n
	}
}

func (b *builder) enum(values []any) *enum {
	e := &enum{forms: make(map[string]struct{}, len(values))}
	for _, v := range values {
		form, err := canonical.Marshal(v)
		b.err = errors.Join(b.err, err)
		e.forms[string(form)] = struct{}{}
		e.longest = max(e.longest, len(form))
		if c := form[0]; c == '{' || c == '[' {
			e.nested = true
		}
		if len(e.first) < maxListed {
			e.first = append(e.first, string(form))
		}
	}
	e.more = len(values) - len(e.first)
	return e
}

func (b *builder) object(s *jsonschema.Schema) *objectRule {
	o := &objectRule{
		least: s.MinProperties, most: s.MaxProperties, required: newNames(s.Required),
		propertyNames: b.rule(s.PropertyNames),
	}
	if len(s.Properties) > 0 {
		o.properties = make(map[string]*rule, len(s.Properties))
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			o.properties[name] = b.rule(s.Properties[name])
		}
	}
	for re, sub := range s.PatternProperties {
		o.patterns = append(o.patterns, patternRule{re.(*Pattern), b.rule(sub)})
	}
	slices.SortFunc(o.patterns, func(a, b patternRule) int { return strings.Compare(a.pattern.text, b.pattern.text) })
	o.additional, o.closed, o.allEvaluated = b.open(s.AdditionalProperties)
	o.perMember = len(o.properties) > 0 || len(o.patterns) > 0 || o.closed || o.additional != nil
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		d := dependent{name: name}
		switch wanted := s.Dependencies[name].(type) {
		case []string:
			d.required = newNames(wanted)
		case *jsonschema.Schema:
			d.rule = b.rule(wanted)
		}
		o.dependents = append(o.dependents, d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		o.dependents = append(o.dependents, dependent{name: name, rule: b.rule(s.DependentSchemas[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		o.dependents = append(o.dependents, dependent{name: name, required: newNames(s.DependentRequired[name])})
	}
	o.unevaluated = b.rule(s.UnevaluatedProperties)
	if o.least == nil && o.most == nil && len(o.required.list) == 0 && !o.perMember && !o.allEvaluated &&
		o.propertyNames == nil && len(o.dependents) == 0 && o.unevaluated == nil {
		return nil
	}
	return o
}

func (o *objectRule) leaf() bool {
	return o == nil ||
		len(o.properties) == 0 && len(o.patterns) == 0 && o.additional == nil && o.propertyNames == nil &&
			len(o.dependents) == 0 && o.unevaluated == nil
}

func newNames(list []string) names {
	n := names{list: slices.Compact(slices.Sorted(slices.Values(list)))}
	for _, name := range n.list {
		n.bytes += int64(len(name))
	}
	return n
}

func (b *builder) list(s *jsonschema.Schema) *listRule {
	l := &listRule{
		least: s.MinItems, most: s.MaxItems, unique: s.UniqueItems, contains: b.rule(s.Contains),
		leastFits: s.MinContains, mostFits: s.MaxContains, fitsEvaluate: s.DraftVersion >= 2020,
	}
	if s.DraftVersion >= 2020 {
		l.prefix, l.rest = b.all(s.PrefixItems), b.rule(s.Items2020)
		l.allEvaluated = l.rest != nil
	} else {
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			l.rest, l.allEvaluated = b.rule(items), true
		case []*jsonschema.Schema:
			l.prefix = b.all(items)
			l.rest, l.closed, l.allEvaluated = b.open(s.AdditionalItems)
		}
	}
	l.unevaluated = b.rule(s.UnevaluatedItems)
	if l.least == nil && l.most == nil && !l.unique && len(l.prefix) == 0 && l.rest == nil && !l.allEvaluated &&
		l.contains == nil && l.unevaluated == nil {
		return nil
	}
	return l
}

func (l *listRule) leaf() bool {
	return l == nil || len(l.prefix) == 0 && l.rest == nil && l.contains == nil && l.unevaluated == nil
}

// resource finds the resource of a schema, and its dynamic anchors, which the library does not
// export.
func (b *builder) resource(s *jsonschema.Schema) *resource {
	hidden := func(of reflect.Value) *jsonschema.Schema {
		return reflect.NewAt(reflect.TypeFor[jsonschema.Schema](), of.UnsafePointer()).Interface().(*jsonschema.Schema)
	}
	owner := hidden(reflect.ValueOf(s).Elem().FieldByName("resource"))
	if r, ok := b.resources[owner]; ok {
		return r
	}
	r := &resource{anchors: map[string]*rule{}, recursive: owner.RecursiveAnchor}
	b.resources[owner] = r
	anchors := map[string]*jsonschema.Schema{}
	for each := reflect.ValueOf(owner).Elem().FieldByName("dynamicAnchors").MapRange(); each.Next(); {
		anchors[each.Key().String()] = hidden(each.Value())
	}
	for _, name := range slices.Sorted(maps.Keys(anchors)) {
		r.anchors[name] = b.rule(anchors[name])
		b.uses[r.anchors[name].id]++ // it comes at every depth
	}
	return r
}
