package flow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	keyword "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/quipu-journal/quipu/canonical"
)

// schemaURL names the schema within itself; nothing is fetched.
const schemaURL = "quipu:///input"

// noLoader refuses to fetch schemas: a flow is complete in itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema refers to nothing outside itself, %s is not fetched", url)
}

// schema compiles the schema of the flow's input.
func (c *collector) schema(n *node) *jsonschema.Schema {
	if n == nil {
		return nil
	}
	text, err := canonical.Payload(n.appendJSON(nil))
	if err != nil { // duplicate keys, already reported
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		compiler.UseLoader(noLoader{})
		if err = compiler.AddResource(schemaURL, document); err == nil {
			var schema *jsonschema.Schema
			if schema, err = compiler.Compile(schemaURL); err == nil {
				return schema
			}
		}
	}
	c.schemaFault(n, err)
	return nil
}

// schemaFault reports faults of a schema at the values that they concern.
func (c *collector) schemaFault(n *node, err error) {
	var outer *jsonschema.SchemaValidationError
	if errors.As(err, &outer) { // this type does not unwrap
		err = outer.Err
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		c.add(n.position, "input", "", "not a JSON Schema: %s", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	for _, p := range problemsOf(invalid) {
		place, path := n, "input"
		for _, step := range p.steps {
			inner := place.child(step)
			if inner == nil {
				break
			}
			place, path = inner, join(path, step)
		}
		c.add(place.position, path, place.text, "not a JSON Schema: %s", p.Message)
	}
}

// child follows one step of a JSON pointer.
func (n *node) child(step string) *node {
	if n.kind != kindList {
		return n.get(step)
	}
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// InputError says where a job's input does not fit the flow's schema.
type InputError struct {
	// Flow is the flow's name.
	Flow string
	// Problems has at least one item.
	Problems []InputProblem
}

// InputProblem is one value that does not fit.
type InputProblem struct {
	// Path leads to the value: $.lines[0].amount.
	Path string
	// Message says what the schema wants.
	Message string

	steps []string
}

// Error lists the places.
func (e *InputError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Path + ": " + p.Message
	}
	return fmt.Sprintf("the input does not fit flow %s: %s", e.Flow, strings.Join(lines, "; "))
}

// CheckInput checks a job's input, canonical payload JSON, against the flow's schema, within the
// budget. Errors: *InputError, *BudgetError, ErrStopped.
func (f *Flow) CheckInput(canonicalJSON []byte, b *Budget) error {
	if f.schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(canonicalJSON))
	if err != nil {
		return &InputError{Flow: f.name, Problems: []InputProblem{{Path: "$", Message: err.Error()}}}
	}
	err = f.schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return &InputError{Flow: f.name, Problems: []InputProblem{{Path: "$", Message: err.Error()}}}
	}
	return &InputError{Flow: f.name, Problems: problemsOf(invalid)}
}

// problemsOf lists the leaves of a validation error by their places. The library walks maps,
// so its own order changes from call to call.
func problemsOf(e *jsonschema.ValidationError) []InputProblem {
	problems := leaves(e)
	slices.SortFunc(problems, func(a, b InputProblem) int {
		return cmp.Or(slices.CompareFunc(a.steps, b.steps, compareSteps), strings.Compare(a.Message, b.Message))
	})
	return problems
}

// compareSteps orders two steps of a path: numbers, as the items of a list have, come first.
func compareSteps(a, b string) int {
	m, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(m, n), strings.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// leaves lists the values that do not fit, in the library's order.
func leaves(e *jsonschema.ValidationError) []InputProblem {
	if len(e.Causes) == 0 {
		return []InputProblem{{Path: pathText(e.InstanceLocation), Message: messageOf(e), steps: e.InstanceLocation}}
	}
	var problems []InputProblem
	for _, cause := range e.Causes {
		problems = append(problems, leaves(cause)...)
	}
	return problems
}

// messageOf says what the schema wants. Limits are told as exact decimals, which the library
// rounds.
func messageOf(e *jsonschema.ValidationError) string {
	limit := func(name string, got, want *big.Rat) string {
		return fmt.Sprintf("%s: got %s, want %s", name, decimal(got), decimal(want))
	}
	switch k := e.ErrorKind.(type) {
	case *keyword.Minimum:
		return limit("minimum", k.Got, k.Want)
	case *keyword.Maximum:
		return limit("maximum", k.Got, k.Want)
	case *keyword.ExclusiveMinimum:
		return limit("exclusiveMinimum", k.Got, k.Want)
	case *keyword.ExclusiveMaximum:
		return limit("exclusiveMaximum", k.Got, k.Want)
	case *keyword.MultipleOf:
		return limit("multipleOf", k.Got, k.Want)
	case *keyword.AdditionalProperties:
		slices.Sort(k.Properties)
	}
	if unit := e.BasicOutput(); unit.Error != nil {
		return unit.Error.String()
	} else if len(unit.Errors) > 0 && unit.Errors[0].Error != nil {
		return unit.Errors[0].Error.String()
	}
	return "does not fit"
}

// decimal is a number that JSON can write, exactly if that is short.
func decimal(r *big.Rat) string {
	const short = 60 // characters
	if digits, exact := r.FloatPrec(); exact && digits < short && r.Num().BitLen() < 3*short {
		return r.FloatString(digits)
	}
	f, _ := r.Float64()
	return fmt.Sprintf("about %v", f)
}

func pathText(steps []string) string {
	path := "$"
	for _, step := range steps {
		if _, err := strconv.Atoi(step); err == nil {
			path += "[" + step + "]"
			continue
		}
		path += "." + step
	}
	return path
}
