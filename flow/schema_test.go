package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// checked is a flow with an input schema.
func checked(schema string) (*flow.Flow, error) {
	return flow.Parse("f.json", []byte(`{"flow":"asks","version":"1","activities":{"s":{"type":"trigger"}},"input":`+schema+`}`))
}

func times(n int, sep, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#i", fmt.Sprint(i))
	}
	return strings.Join(parts, sep)
}

const filter = `{"$defs":{"node":{"oneOf":[
	{"type":"object","required":["op","args"],"properties":{"op":{"const":"and"},"args":{"type":"array","items":{"$ref":"#/$defs/node"}}}},
	{"type":"object","required":["op","args"],"properties":{"op":{"const":"or"},"args":{"type":"array","items":{"$ref":"#/$defs/node"}}}},
	{"type":"object","required":["var"],"properties":{"var":{"type":"string"}}}]}},"properties":{"where":{"$ref":"#/$defs/node"}}}`

// A filter of a few hundred bytes is checked in some thousand units, and not in 2^40.
func TestANestedFilterIsChecked(t *testing.T) {
	t.Parallel()
	f, err := checked(filter)
	require.NoError(t, err)
	for _, depth := range []int{40, 95} {
		input := func(v string) []byte {
			return []byte(`{"where":` + strings.Repeat(`{"args":[`, depth) + v + strings.Repeat(`],"op":"or"}`, depth) + `}`)
		}
		b := flow.NewBudget(nil)
		require.NoError(t, f.CheckInput(input(`{"var":"a"}`), b))
		require.Less(t, b.Spent(), int64(100*depth))
		err := f.CheckInput(input(`{"var":7}`), b)
		require.EqualError(t, err, "the input does not fit flow asks: $.where"+strings.Repeat(".args[0]", depth)+".var: got number, want string")
		require.Less(t, b.Spent(), int64(200*depth))
	}
}

// More work than the budget has is refused as that, and says so; a stop is no verdict.
func TestTheCheckOfAnInputIsBounded(t *testing.T) {
	t.Parallel()
	f, err := checked(`{"patternProperties":{` + times(500, ",", `"x#i$":{}`) + `}}`)
	require.NoError(t, err)
	input := []byte("{" + times(20_000, ",", `"a#i":1`) + "}")
	err = f.CheckInput(input, flow.NewBudget(nil))
	var beyond *flow.BudgetError
	require.ErrorAs(t, err, &beyond)
	require.ErrorContains(t, err, "the check of an input of 208891 bytes against the schema of flow asks: ")
	require.ErrorContains(t, err, fmt.Sprint(flow.MaxStepCost))

	err = f.CheckInput(input, flow.NewBudget(func() bool { return true }))
	require.ErrorIs(t, err, flow.ErrStopped)
	require.NotErrorAs(t, err, &beyond)
}

// The error for an input is short, whatever the input is.
func TestAnInputErrorIsShort(t *testing.T) {
	t.Parallel()
	f, err := checked(`{"items":{"additionalProperties":{"pattern":"^x$"}}}`)
	require.NoError(t, err)
	long := strings.Repeat("long", 50_000)
	err = f.CheckInput([]byte("["+times(2_000, ",", `{"`+long[:400]+`":"y"}`)+`,{"`+long+`":"`+long+`"}]`), flow.NewBudget(nil))
	var misfit *flow.InputError
	require.ErrorAs(t, err, &misfit)
	require.Len(t, misfit.Problems, flow.MaxProblems)
	require.Equal(t, 2_001-flow.MaxProblems, misfit.More)
	require.Less(t, len(err.Error()), 10_000)
	require.ErrorContains(t, err, "; and 1981 more")
	err = f.CheckInput([]byte(`[{"`+long+`":"`+long+`"}]`), flow.NewBudget(nil))
	require.EqualError(t, err, "the input does not fit flow asks: $[0]."+long[:64]+"…: '"+long[:64]+"…' does not match pattern '^x$'")

	f, err = checked(`{"additionalProperties":{"$ref":"#"},"type":"object"}`)
	require.NoError(t, err)
	err = f.CheckInput([]byte(strings.Repeat(`{"`+long[:60]+`":`, 199)+"7"+strings.Repeat("}", 199)), flow.NewBudget(nil))
	require.ErrorAs(t, err, &misfit)
	require.Len(t, misfit.Problems, 1)
	require.Less(t, len(misfit.Problems[0].Path), 1_010)
	require.ErrorContains(t, err, "g: got number, want object")
}

// What a schema takes to be compiled is bounded before it is compiled.
func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, fault string }{
		{`{"$defs":{` + times(flow.MaxSubschemas, ",", `"d#i":{}`) + `}}`, fmt.Sprintf("at most %d mappings and booleans", flow.MaxSubschemas)},
		{`{"enum":[` + times(flow.MaxSchemaValues, ",", `#i`) + `]}`, fmt.Sprintf("at most %d values", flow.MaxSchemaValues)},
		{`{"$defs":{"` + strings.Repeat("long", 10_000) + `":{"properties":{` + times(30, ",", `"#i":{}`) + `}}}}`, fmt.Sprintf("at most %d bytes in all", flow.MaxSchemaPaths)},
		{`{"$defs":{` + times(flow.MaxSchemaIDs+1, ",", `"d#i":{"$id":"x#i"}`) + `}}`, fmt.Sprintf("at most %d identifiers", flow.MaxSchemaIDs)},
		{`{"allOf":[` + times(flow.MaxLooseRefs+1, ",", `{"$ref":"#/components/d#i"}`) + `]}`, fmt.Sprintf("at most %d references", flow.MaxLooseRefs)},
		{`{"items":{"pattern":"` + strings.Repeat("a", flow.MaxPattern+1) + `"}}`, fmt.Sprintf("a pattern has at most %d bytes", flow.MaxPattern)},
		{`{"patternProperties":{"` + strings.Repeat("a", flow.MaxPattern+1) + `":true}}`, fmt.Sprintf("a pattern has at most %d bytes", flow.MaxPattern)},
		{`{"pattern":"(` + strings.Repeat("abcdefgh", 20) + `){1000}"}`, fmt.Sprintf("at most %d bytes and instructions in all", flow.MaxPatternSize)},
	} {
		_, err := checked(c.schema)
		require.ErrorContains(t, err, c.fault)
		require.NotContains(t, err.Error(), "\n", "one fault")
	}
	_, err := checked(`{"required":[` + times(50_000, ",", `#i`) + `]}`)
	require.ErrorContains(t, err, "(and 49900 more faults)")
	_, err = checked(`{"$defs":{` + times(flow.MaxLooseRefs+1, ",", `"d#i":{"type":"string"}`) + `},"allOf":[` + times(flow.MaxLooseRefs+1, ",", `{"$ref":"#/$defs/d#i"}`) + `]}`)
	require.NoError(t, err, "references to subschemas")
}
