package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What does not fit is told in few words, of the alternatives by those that came nearest.
func TestMisfits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 100_000)
	for _, c := range []struct{ schema, input, want string }{
		{recursive("oneOf"), strings.Replace(where(60), `"a"`, `1`, 1), "where" + strings.Repeat("/args/0", 60) + "/var: got number, want string"},
		{recursive("anyOf"), strings.Replace(where(60), `"op":"1"`, `"op":"9"`, 1), "where" + strings.Repeat("/args/0", 59) +
			"/op: value must be '0'; where" + strings.Repeat("/args/0", 59) + "/op: value must be '1'; where" + strings.Repeat("/args/0", 59) + "/op: value must be '2'"},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, ": got number, want string; : got number, want null"},
		{`{"oneOf":[{"minimum":1},{"maximum":3}]}`, `2`, ": 'oneOf' failed, subschemas 0, 1 matched"},
		{`{"$ref":"#"}`, `1`, ": the schema refers to itself here, without an end"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`, `1`, ": the schema refers to itself here, without an end"},
		{`{"items":false}`, `[1]`, "0: false schema"},
		{`{"not":{}}`, `1`, ": 'not' failed"},
		{`{"maxLength":3}`, `"` + long + `"`, ": maxLength: got 400000, want 3"},
		{`{"pattern":"^x"}`, `"` + long + `"`, ": '" + strings.Repeat("long", 16) + "…' does not match pattern '^x'"},
		{`{"const":"` + long + `"}`, `1`, ": value must be '" + strings.Repeat("long", 16) + "…'"},
		{`{"enum":[` + rep(12, ",", `#i`) + `]}`, `"x"`, ": value must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"},
		{
			`{"additionalProperties":false}`, "{" + strings.Join(sortedNames(12), ",") + "}",
			": additional properties 'a00000', 'a00001', 'a00002', 'a00003', 'a00004', 'a00005', 'a00006', 'a00007', 'a00008', 'a00009', … not allowed",
		},
		{`{"minimum":1e-40}`, `0.` + strings.Repeat("0", 20) + strings.Repeat("1", 80) + `e-200`, ": minimum: got about 1.111111111111111e-221, want " +
			"0.0000000000000000000000000000000000000001"},
		{`{"unevaluatedProperties":false,"properties":{"a":true}}`, `{"a":1,"b":2}`, "b: false schema"},
		{`{"propertyNames":{"maxLength":1}}`, `{"bb":2}`, ": invalid propertyName 'bb'"},
		{`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`, ": properties 'b', 'c' required, if 'a' exists"},
	} {
		misfit, err := compile(t, c.schema).Check(string(canonically(t, c.input)), unbounded)
		require.NoError(t, err)
		require.NotNil(t, misfit, c.schema)
		told := make([]string, len(misfit.Problems))
		for i, p := range misfit.Problems {
			told[i] = strings.Join(p.Steps, "/") + ": " + p.Message
		}
		require.Equal(t, c.want, strings.Join(told, "; "), c.schema)
	}
}

// The list is bounded, and says how many others there are.
func TestMisfitsAreFew(t *testing.T) {
	t.Parallel()
	misfit, err := compile(t, `{"items":{"type":"string"}}`).Check("["+rep(5_000, ",", "#i")+"]", unbounded)
	require.NoError(t, err)
	require.Len(t, misfit.Problems, MaxProblems)
	require.Equal(t, 5_000-MaxProblems, misfit.More)
	require.Equal(t, fmt.Sprint(MaxProblems-1), misfit.Problems[MaxProblems-1].Steps[0])
	for _, h := range recursions() {
		misfit, err = compile(t, strings.ReplaceAll(h.schema, "string", "null")).Check(h.input, unbounded)
		if err == nil && misfit != nil {
			require.LessOrEqual(t, len(misfit.Problems), MaxProblems, h.name)
		}
	}
}

// References that lead on at the same value cannot fill the stack.
func TestNesting(t *testing.T) {
	t.Parallel()
	chain := rep(300, ",", `"a#i":{"$ref":"#/$defs/a#i+"}`)
	for i := range 300 {
		chain = strings.Replace(chain, fmt.Sprintf("a%d+", i), fmt.Sprintf("a%d", i+1), 1)
	}
	schema := compile(t, `{"$ref":"#/$defs/a0","$defs":{`+chain+`,"a300":{"items":{"$ref":"#"}}}}`)
	misfit, err := schema.Check(strings.Repeat("[", 30)+strings.Repeat("]", 30), unbounded)
	require.NoError(t, err)
	require.Nil(t, misfit)
	_, err = schema.Check(strings.Repeat("[", 100)+strings.Repeat("]", 100), unbounded)
	require.ErrorIs(t, err, ErrNesting)
}

func BenchmarkCheck(b *testing.B) {
	const order = `{"type":"object","required":["lines"],"properties":{"lines":{"type":"array","items":{"$ref":"#/$defs/line"}}},"$defs":{"line":{"type":"object",` +
		`"required":["sku","quantity","price"],"additionalProperties":false,"properties":{"sku":{"type":"string","pattern":"^[A-Z]{3}-[0-9]{6}$"},` +
		`"quantity":{"type":"integer","minimum":1},"price":{"type":"number","multipleOf":0.01},"note":{"maxLength":200}}}}}`
	line := `{"note":"some text of a line","price":19.99,"quantity":3,"sku":"ABC-123456"}`
	all := append(masses(10), hostile{name: "order", schema: order, input: `{"lines":[` + rep(10_000, ",", line) + `]}`})
	for _, h := range all {
		b.Run(strings.ReplaceAll(h.name, " ", "-"), func(b *testing.B) {
			schema := compile(b, h.schema)
			var units int64
			for b.Loop() {
				m := meter{limit: 2_000_000}
				_, _ = schema.Check(h.input, m.spend)
				units += m.spent
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(units), "ns/unit")
			b.ReportMetric(float64(units)/float64(b.N), "units")
		})
	}
}
