package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	keyword "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/quipu-journal/quipu/flow/internal/schema"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// schema compiles the schema of the flow's input.
func (c *collector) schema(n *node) *schema.Schema {
	if n == nil || !c.schemaIsBounded(n) {
		return nil
	}
	text, err := canonical.Payload(n.appendJSON(nil))
	if err != nil { // duplicate keys, already reported
		return nil
	}
	compiled, err := schema.Compile(text)
	if err != nil {
		c.schemaFault(n, err)
		return nil
	}
	return compiled
}

// schemaFault reports faults of a schema at the values that they concern.
func (c *collector) schemaFault(n *node, err error) {
	var outer *jsonschema.SchemaValidationError
	if errors.As(err, &outer) { // this type does not unwrap
		err = outer.Err
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		c.add(n.position, "input", "", "not a JSON Schema: %.1000s", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	problems, more := problemsOf(invalid)
	c.more += more
	for _, p := range problems {
		place, path := n, "input"
		for _, step := range p.steps {
			inner := place.child(step)
			if inner == nil {
				break
			}
			place, path = inner, join(path, step)
		}
		c.add(place.position, path, place.text, "not a JSON Schema: %.1000s", p.Message)
	}
}

// child follows one step of a JSON pointer.
func (n *node) child(step string) *node {
	if n.kind != kindList {
		return n.get(step)
	}
	i, ok := index(step)
	if !ok || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// InputError says where a job's input does not fit the flow's schema.
type InputError struct {
	// Flow is the flow's name.
	Flow string
	// Problems are one to MaxProblems.
	Problems []InputProblem
	// More is how many others were found.
	More int
}

// InputProblem is one value that does not fit.
type InputProblem struct {
	// Path leads to the value: $.lines[0].amount. Long names are cut.
	Path string
	// Message says what the schema wants. Long values are cut.
	Message string

	steps []string
}

// Error lists the places.
func (e *InputError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Path + ": " + p.Message
	}
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf("; and %d more", e.More)
	}
	return fmt.Sprintf("the input does not fit flow %s: %s%s", e.Flow, strings.Join(lines, "; "), more)
}

// CheckInput checks a job's input, canonical payload JSON, against the flow's schema, within the
// budget. Errors: *InputError, *BudgetError, ErrStopped.
func (f *Flow) CheckInput(canonicalJSON []byte, b *Budget) error {
	if f.schema == nil {
		return nil
	}
	text, err := canonical.Payload(canonicalJSON)
	if err != nil {
		return f.misfit(err)
	}
	misfit, err := f.schema.Check(string(text), b.Spend)
	switch {
	case errors.Is(err, schema.ErrNesting):
		return f.misfit(err)
	case err != nil:
		return fmt.Errorf("the check of an input of %d bytes against the schema of flow %s: %w", len(text), f.name, err)
	case misfit == nil:
		return nil
	}
	refused := &InputError{Flow: f.name, More: misfit.More}
	for _, p := range misfit.Problems {
		refused.Problems = append(refused.Problems,
			InputProblem{Path: pathText(p.Steps), Message: p.Message, steps: p.Steps})
	}
	sortProblems(refused.Problems)
	return refused
}

// misfit is an input that cannot be checked at all.
func (f *Flow) misfit(err error) error {
	return &InputError{Flow: f.name, Problems: []InputProblem{{Path: "$", Message: err.Error()}}}
}

func sortProblems(problems []InputProblem) {
	slices.SortFunc(problems, func(a, b InputProblem) int {
		return cmp.Or(slices.CompareFunc(a.steps, b.steps, compareSteps), strings.Compare(a.Message, b.Message))
	})
}

// maxSchemaFaults bounds the faults of one schema that are listed. To find the place of each costs
// what the schema's members are.
const maxSchemaFaults = 100

// problemsOf lists the leaves of a validation error by their places, and says how many others there
// are. The library walks maps, so its own order changes from call to call.
func problemsOf(e *jsonschema.ValidationError) (problems []InputProblem, more int) {
	all := leaves(e, nil)
	slices.SortFunc(all, func(a, b *jsonschema.ValidationError) int {
		return slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, compareSteps)
	})
	listed := all[:min(len(all), maxSchemaFaults)]
	for _, leaf := range listed {
		problems = append(problems, InputProblem{Message: messageOf(leaf), steps: leaf.InstanceLocation})
	}
	sortProblems(problems)
	return problems, len(all) - len(listed)
}

// compareSteps orders two steps of a path: numbers, as the items of a list have, come first.
func compareSteps(a, b string) int {
	m, isA := index(a)
	n, isB := index(b)
	switch {
	case isA && isB:
		return cmp.Or(cmp.Compare(m, n), strings.Compare(a, b))
	case isA:
		return -1
	case isB:
		return 1
	}
	return strings.Compare(a, b)
}

// index reads a step that may be the index of an item.
func index(step string) (int, bool) {
	if step == "" || step[0] < '0' || step[0] > '9' {
		return 0, false
	}
	i, err := strconv.Atoi(step)
	return i, err == nil
}

// leaves lists the values that do not fit, in the library's order.
func leaves(e *jsonschema.ValidationError, to []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return append(to, e)
	}
	for _, cause := range e.Causes {
		to = leaves(cause, to)
	}
	return to
}

// messageOf says what the schema of schemas wants.
func messageOf(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *keyword.AdditionalProperties:
		slices.Sort(k.Properties)
	case *keyword.Format: // the reason stands behind the value
		return fmt.Sprintf("%.80q is not valid %s: %v", k.Got, k.Want, k.Err)
	}
	if unit := e.BasicOutput(); unit.Error != nil {
		return unit.Error.String()
	} else if len(unit.Errors) > 0 && unit.Errors[0].Error != nil {
		return unit.Errors[0].Error.String()
	}
	return "does not fit"
}

// What a path shows.
const (
	maxStep = 64    // bytes of a name
	maxPath = 1_000 // bytes of the way: its begin and its end
)

func pathText(steps []string) string {
	path := "$"
	for _, step := range steps {
		if _, ok := index(step); ok {
			path += "[" + step + "]"
			continue
		}
		if len(step) > maxStep {
			step = strings.ToValidUTF8(step[:maxStep], "") + "…"
		}
		path += "." + step
	}
	if len(path) > maxPath {
		path = strings.ToValidUTF8(path[:maxPath/2], "") + "…" + strings.ToValidUTF8(path[len(path)-maxPath/2:], "")
	}
	return path
}
