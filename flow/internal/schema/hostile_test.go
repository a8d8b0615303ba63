package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// hostile is a schema and an input that make work.
type hostile struct {
	name, schema, input string
	most                int64 // units for each byte of the input; 0: it goes beyond the budget
}

var errBudget = errors.New("beyond the budget")

// meter is a budget.
type meter struct{ spent, limit int64 }

func (m *meter) spend(units int64) error {
	if m.spent += units; m.spent > m.limit {
		return errBudget
	}
	return nil
}

func rep(n int, sep, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#i", fmt.Sprint(i))
	}
	return strings.Join(parts, sep)
}

func wrap(n int, before, inner, after string) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

const (
	branch = `{"type":"object","required":["op","args"],"properties":{"op":{"const":"#i"},"args":{"type":"array","items":{"$ref":"#/$defs/node"}}}}`
	nodes  = `{"$defs":{"node":{"KEY":[%s,{"type":"object","required":["var"],"properties":{"var":{"type":"string"}}}]}},"properties":{"where":{"$ref":"#/$defs/node"}}}`
	tree   = `{"$id":"tree","$dynamicAnchor":"n","type":"object","oneOf":[{"required":["var"]},{"properties":{"args":{"items":{"$dynamicRef":"#n"}}},"required":["args"]},` +
		`{"properties":{"args":{"items":{"$dynamicRef":"#n"}}},"required":["args","x"]}]}`
)

func recursive(keyword string) string {
	return strings.ReplaceAll(fmt.Sprintf(nodes, rep(3, ",", branch)), "KEY", keyword)
}

func where(depth int) string {
	return `{"where":` + wrap(depth, `{"args":[`, `{"var":"a"}`, `],"op":"1"}`) + `}`
}

// recursions cost 2^depth and more where outcomes are not kept.
func recursions() []hostile {
	list := []hostile{
		{"oneOf, 40 deep", recursive("oneOf"), where(40), 12},
		{"oneOf, 95 deep", recursive("oneOf"), where(95), 12},
		{"oneOf that fails below", recursive("oneOf"), strings.Replace(where(95), `"a"`, `1`, 1), 12},
		{"anyOf that fails below", recursive("anyOf"), strings.Replace(where(95), `"a"`, `1`, 1), 12},
		{"allOf", `{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, wrap(190, "[", "1", "]"), 12},
		{"not", `{"not":{"allOf":[{"items":{"$ref":"#"}},{"not":{"items":{"$ref":"#"}}}]}}`, wrap(190, "[", "1", "]"), 12},
		{"if", `{"if":{"items":{"$ref":"#"}},"then":{"items":{"$ref":"#"}},"else":{"items":{"$ref":"#"}}}`, wrap(190, "[", "1", "]"), 12},
		{"properties of two", `{"properties":{"a":{"$ref":"#"}},"additionalProperties":{"$ref":"#"},"patternProperties":{"^a":{"$ref":"#"}}}`, wrap(190, `{"a":`, "1", "}"), 6},
		{"dependentSchemas", `{"properties":{"a":{"$ref":"#"}},"dependentSchemas":{"a":{"properties":{"a":{"$ref":"#"}}}}}`, wrap(190, `{"a":`, "1", "}"), 6},
		{"contains", `{"contains":{"$ref":"#"},"items":{"$ref":"#"}}`, wrap(190, "[", "1", "]"), 12},
		{"$dynamicRef", tree, wrap(95, `{"args":[`, `{"var":"a"}`, `]}`), 12},
		{
			"$dynamicRef into another resource", `{"$id":"strict","$dynamicAnchor":"n","$ref":"tree","unevaluatedProperties":false,"$defs":{"t":` + tree + `}}`,
			wrap(95, `{"args":[`, `{"var":"a"}`, `]}`), 24,
		},
		{"$recursiveRef", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"anyOf":[{"items":{"$recursiveRef":"#"},"type":"array"},` +
			`{"items":{"$recursiveRef":"#"},"minItems":2},{"type":"string"}]}`, wrap(190, "[", "1", "]"), 30},
		{
			"unevaluatedProperties", `{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"},"b":true}}],"unevaluatedProperties":false}`,
			wrap(190, `{"a":`, "{}", "}"), 10,
		},
	}
	steps := rep(60, ",", `"d#i":{"allOf":[{"$ref":"#/$defs/e#i"},{"$ref":"#/$defs/e#i"}]},"e#i":{"anyOf":[{"$ref":"#/$defs/d#i+"},{"$ref":"#/$defs/d#i+"}]}`)
	for i := range 60 {
		steps = strings.ReplaceAll(steps, fmt.Sprintf("d%d+", i), fmt.Sprintf("d%d", i+1))
	}
	return append(list, hostile{"references beside each other", `{"$ref":"#/$defs/d0","$defs":{` + steps + `,"d60":{"type":"string"}}}`, `12345678901234567890`, 100})
}

// Recursive combinations cost what their values and rules cost: no power, no square of the depth.
func TestRecursionIsLinear(t *testing.T) {
	t.Parallel()
	for _, h := range recursions() {
		spent, err := h.check(t)
		require.NoError(t, err, h.name)
		require.LessOrEqual(t, spent, h.most*int64(len(h.input))+100, h.name)
	}
}

// check returns what a check costs, which is the same each time.
func (h *hostile) check(t testing.TB) (int64, error) {
	compiled, err := Compile(canonically(t, h.schema))
	require.NoError(t, err, h.name)
	limit := int64(2_000_000)
	if h.most == 0 {
		limit = 150_000
	}
	first, second := meter{limit: limit}, meter{limit: limit}
	misfit, err := compiled.Check(h.input, first.spend)
	other, failed := compile(t, h.schema).Check(h.input, second.spend)
	require.Equal(t, err, failed, h.name)
	require.Equal(t, first.spent, second.spent, "%s: the count does not follow from the data", h.name)
	require.Equal(t, misfit, other, h.name)
	return first.spent, err
}

func compile(t testing.TB, schema string) *Schema {
	compiled, err := Compile(canonically(t, schema))
	require.NoError(t, err)
	return compiled
}

func canonically(t testing.TB, text string) []byte {
	form, err := canonical.Payload([]byte(text))
	require.NoError(t, err)
	return form
}

// masses are n times much of one thing. most is in hundredths of units for each byte here.
func masses(n int) []hostile {
	numbers := "[" + rep(n*10_000, ",", "#i") + "]"
	members := "{" + strings.Join(sortedNames(n*2_000), ",") + "}"
	long := `"` + strings.Repeat("ab", n*45_000) + `"`
	digits := "[" + strings.Repeat("1."+strings.Repeat("37", 480)+",", n*90) + "1]"
	return []hostile{
		{"contains", `{"contains":{"const":-1}}`, numbers, 100},
		{"uniqueItems", `{"uniqueItems":true}`, numbers, 100},
		{"nested uniqueItems", `{"uniqueItems":true,"items":{"uniqueItems":true}}`, "[" + rep(n*900, ",", "[#i,[#i,2,3]]") + "]", 100},
		{"patternProperties", `{"patternProperties":{` + rep(500, ",", `"x#i$":{}`) + `}}`, members, 0},
		{"pattern of many steps", `{"pattern":"^(` + strings.Repeat("a?b?", 500) + `)*c"}`, long, 0},
		{"pattern that backtracks elsewhere", `{"pattern":"^((a|b)*a*b*)*c$"}`, long, 0},
		{"pattern of few steps", `{"pattern":"^(ab)*$"}`, long, 100},
		{"enum", `{"items":{"enum":[` + rep(n*10_000, ",", `"value #i"`) + `]}}`, "[" + rep(n*1_000, ",", `"value #i"`) + "]", 100},
		{
			"enum of long values", `{"items":{"enum":[` + rep(90, ",", `"`+strings.Repeat("v", 9_000)+`#i"`) + `]}}`,
			"[" + rep(90, ",", `"`+strings.Repeat("v", 9_000)+`#i"`) + "]", 60,
		},
		{"multipleOf", `{"items":{"multipleOf":1e-1000,"minimum":-1e900}}`, digits, 100},
		{"propertyNames", `{"propertyNames":{"pattern":"^[a-z0-9]*$","maxLength":99}}`, members, 200},
		{"required", `{"required":[` + strings.ReplaceAll(strings.Join(sortedNames(n*2_000), ","), ":1", "") + `]}`, members, 100},
		{"dependentRequired", `{"dependentRequired":{` + strings.ReplaceAll(strings.Join(sortedNames(n*400), ","), ":1", `:["a00001","a00002"]`) + `}}`, members, 100},
		{"unevaluatedItems", `{"allOf":[` + rep(900, ",", `{"prefixItems":[true],"contains":{"const":#i}}`) + `],"unevaluatedItems":true}`, numbers, 0},
		{"unevaluatedProperties", `{"anyOf":[` + rep(900, ",", `{"properties":{"a0000#i":true}}`) + `],"unevaluatedProperties":{}}`, members, 0},
		{"numbers", `{"items":{"type":"integer","minimum":0,"maximum":1000000}}`, numbers, 100},
		{"references in rings", `{"$ref":"#/$defs/a0","$defs":{` + rep(40, ",", `"a#i":{"anyOf":[`+rep(40, ",", `{"$ref":"#/$defs/a#i"}`)+`]}`) + `}}`, `1`, 0},
	}
}

func sortedNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"a%05d":1`, i)
	}
	return names
}

// Much of one thing ends within the budget or at it, and is counted alike each time.
func TestMassesAreCounted(t *testing.T) {
	t.Parallel()
	for _, h := range masses(1) {
		spent, err := h.check(t)
		if h.most == 0 {
			require.ErrorIs(t, err, errBudget, h.name)
			continue
		}
		require.NoError(t, err, h.name)
		require.LessOrEqual(t, spent, h.most*int64(len(h.input))/100+100, h.name)
	}
}
