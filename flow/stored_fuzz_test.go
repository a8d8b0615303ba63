package flow_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// FuzzFromCanonical: stored bytes are that flow, or are refused; a flow that the database
// changed never runs (F17).
func FuzzFromCanonical(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(f, err)
		if parsed, err := flow.Parse(name, src); err == nil {
			f.Add(parsed.Canonical())
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		stored, err := flow.FromCanonical(src)
		if err != nil {
			var faults flow.Faults
			require.True(t, errors.As(err, &faults) && len(faults) > 0 || errors.Is(err, flow.ErrNotCanonical), "%v", err)
			return
		}
		require.Equal(t, string(src), string(stored.Canonical()))
		require.LessOrEqual(t, len(src), flow.MaxDefinitionBytes)
		again, err := flow.FromCanonical(stored.Canonical())
		require.NoError(t, err)
		require.Equal(t, stored.Digest(), again.Digest())
		require.Equal(t, namesOf(stored), namesOf(again))
	})
}

// FuzzCheckInput: an input fits a schema or is refused with places, or makes too much work, each
// time alike; an input that fits has one strict key (E16).
func FuzzCheckInput(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"number","multipleOf":0.01}}}`, `{"a":1e-3}`},
		{`{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"enum":[1,"1"]}}}`, `[1,"1",2]`},
		{`{"$ref":"#"}`, `{}`},
		{`{"pattern":"^(a+)+$"}`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"`},
		{`false`, `null`},
		{`{"$ref":"https://example.com/x"}`, `1`},
		{`{"minLength":1e400}`, `"x"`},
		{`{"oneOf":[{"items":{"$ref":"#"},"minItems":1},{"items":{"$ref":"#"},"maxItems":1}],"unevaluatedItems":{"type":"null"}}`, `[[[[[[1]]]]]]`},
		{`{"$dynamicAnchor":"n","not":{"contains":{"$dynamicRef":"#n"}},"dependentSchemas":{"a":{"propertyNames":{"pattern":"[^b]"}}}}`, `[{"a":1e-999},{"b":[]}]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, input string) {
		parsed, err := flow.Parse("f.json", []byte(`{"flow":"a","version":"1","activities":{"s":{"type":"trigger"}},"input":`+schema+`}`))
		if err != nil {
			var faults flow.Faults
			require.ErrorAs(t, err, &faults)
			return
		}
		text, err := canonical.Payload([]byte(input))
		if err != nil {
			return
		}
		err = parsed.CheckInput(text, flow.NewBudget(nil))
		var beyond *flow.BudgetError
		if err != nil && !errors.As(err, &beyond) {
			var refused *flow.InputError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Problems)
			require.LessOrEqual(t, len(refused.Problems), flow.MaxProblems)
			for _, p := range refused.Problems {
				require.Equal(t, byte('$'), p.Path[0], "the path leads into the input")
				require.NotEmpty(t, p.Message)
			}
		}
		require.Equal(t, err, parsed.CheckInput(text, flow.NewBudget(nil)), "it says the same each time")
		require.Len(t, parsed.StrictKey(text), 64)
	})
}

// FuzzSleep: an accepted duration of a flow is within its limits, and a computed one is
// checked like a literal.
func FuzzSleep(f *testing.F) {
	for _, seed := range []string{"500ms", "0s", "-1s", "8760h", "1e3s", "9223372036854775807ns", "1h1h", "∞", "+5s", ".5s", "87600h0.000000001s"} {
		f.Add(seed)
	}
	build := func(text string) (*flow.Flow, error) {
		return flow.New("a").Version("1").Trigger("s").Hook("h", flow.Sleep(text)).Transition("s", "h").Build()
	}
	computed, err := build("${ s.output }")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		value, err := canonical.Payload(canonical.AppendString(nil, text))
		if err != nil {
			return
		}
		hook := computed.Activities()[1]
		d, late := hook.Sleep(results{"s": ran(string(value))})
		if late == nil {
			require.True(t, d >= 0 && d <= flow.MaxSleep)
		}
		written, err := build(text)
		if err != nil || !written.Activities()[1].HasSleep {
			require.Error(t, late, "%q: refused as it stands in a flow", text)
			return
		}
		stands, err := written.Activities()[1].Sleep(results{})
		if err != nil || strings.Contains(text, "${") {
			return // an expression
		}
		require.NoError(t, late)
		require.Equal(t, stands, d)
	})
}
