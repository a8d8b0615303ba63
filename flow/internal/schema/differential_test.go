package schema

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// theirs compiles a schema with the library alone.
func theirs(t require.TestingT, text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	require.NoError(t, c.AddResource(URL, document))
	return c.Compile(URL)
}

func unbounded(int64) error { return nil }

// both returns the verdicts of the library and of this package.
func both(t require.TestingT, schema, input []byte) (ours, library bool) {
	compiled, err := theirs(t, schema)
	mine, failed := Compile(schema)
	require.NoError(t, err)
	require.NoError(t, failed)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	require.NoError(t, err)
	misfit, err := mine.Check(string(input), unbounded)
	require.NoError(t, err)
	if misfit != nil {
		require.NotEmpty(t, misfit.Problems)
	}
	return misfit == nil, compiled.Validate(value) == nil
}

// The verdict is the library's, for every keyword and draft.
func TestTheVerdictIsTheLibrarys(t *testing.T) {
	t.Parallel()
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := generator{t: t, draft: rapid.SampledFrom(drafts).Draw(t, "draft")}
		schema, err := canonical.Marshal(g.root())
		require.NoError(t, err)
		if _, err := theirs(t, schema); err != nil {
			_, failed := Compile(schema)
			require.Error(t, failed, "the library: %v", err)
			t.Skip("no schema")
		}
		for range 4 {
			input, err := canonical.Marshal(g.value(4))
			require.NoError(t, err)
			ours, library := both(t, schema, input)
			require.Equal(t, library, ours, "schema %s\ninput %s", schema, input)
			verdicts[ours]++
		}
	})
	require.Greater(t, verdicts[true], 10)
	require.Greater(t, verdicts[false], 10)
}

var drafts = []string{
	"", "", "", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema#",
	"http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-04/schema#",
}

// generator draws schemas and values that have much in common.
type generator struct {
	t     *rapid.T
	draft string
	depth int
}

func (g *generator) pick(label string, of ...any) any { return rapid.SampledFrom(of).Draw(g.t, label) }

func (g *generator) name() string { return g.pick("name", "a", "b", "ab", "c~d", "é/\"").(string) }

func (g *generator) count() int { return rapid.IntRange(0, 3).Draw(g.t, "count") }

func (g *generator) value(depth int) any {
	n := rapid.IntRange(0, 9).Draw(g.t, "kind of value")
	if depth == 0 {
		n %= 6
	}
	switch n {
	case 0:
		return nil
	case 1:
		return g.pick("boolean", true, false)
	case 2, 3:
		return g.number()
	case 4, 5:
		return g.pick("string", "", "a", "aa", "abab", "b\"é", "2024-02-30", "1.2.3.4", "\n")
	case 6, 7:
		items := []any{}
		for range g.count() + 1 {
			items = append(items, g.value(depth-1))
		}
		return items
	}
	members := map[string]any{}
	for range g.count() + 1 {
		members[g.name()] = g.value(depth - 1)
	}
	return members
}

func (g *generator) number() any {
	return json.Number(g.pick("number", "0", "1", "2", "3", "-1", "1.5", "0.01", "0.03", "19.99", "1e30", "1e-30", "123456789012345678901", "3e25").(string))
}

func (g *generator) root() any {
	defs := map[string]any{}
	for _, name := range []string{"x", "y", "z"} {
		defs[name] = g.schema()
	}
	root := g.mapping(3)
	if g.draft != "" {
		root["$schema"] = g.draft
	}
	root["$defs"], root["definitions"] = defs, defs
	if g.draft != "" && g.draft != drafts[3] {
		delete(root, "$defs")
	} else {
		delete(root, "definitions")
	}
	if g.draft == drafts[3] {
		root["$recursiveAnchor"] = g.pick("recursive anchor", true, false)
	}
	if g.draft == "" {
		root["$dynamicAnchor"] = "n"
	}
	return root
}

func (g *generator) schema() any {
	if g.depth >= 3 || rapid.IntRange(0, 7).Draw(g.t, "boolean schema") == 0 {
		if g.draft == drafts[6] {
			return map[string]any{}
		}
		return g.pick("boolean", true, false, true)
	}
	return g.mapping(rapid.IntRange(1, 3).Draw(g.t, "keywords"))
}

func (g *generator) mapping(keywords int) map[string]any {
	g.depth++
	defer func() { g.depth-- }()
	s := map[string]any{}
	for range keywords {
		g.keyword(s)
	}
	return s
}

func (g *generator) list() []any {
	list := []any{g.schema()}
	for range g.count() {
		list = append(list, g.schema())
	}
	return list
}

func (g *generator) schemas() map[string]any {
	named := map[string]any{g.name(): g.schema()}
	for range g.count() {
		named[g.name()] = g.schema()
	}
	return named
}

func (g *generator) names() []any {
	var list []any
	for _, name := range []string{"a", "b", "ab"} {
		if rapid.Bool().Draw(g.t, name) {
			list = append(list, name)
		}
	}
	return append(list, "c~d")
}

func (g *generator) keyword(s map[string]any) {
	n := rapid.IntRange(0, 6).Draw(g.t, "group")
	switch n {
	case 0, 1:
		g.plain(s)
	case 2:
		g.objects(s)
	case 3:
		g.lists(s)
	case 4, 5:
		g.combination(s)
	default:
		g.reference(s)
	}
}

func (g *generator) plain(s map[string]any) {
	key := g.pick("plain", "type", "const", "enum", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "multipleOf", "format").(string)
	switch key {
	case "type":
		one := g.pick("type", "null", "boolean", "number", "integer", "string", "array", "object", "object", "array")
		s[key] = g.pick("types", one, []any{one, "integer"}, []any{one})
		if list, ok := s[key].([]any); ok && len(list) == 2 && one == "integer" {
			s[key] = one
		}
	case "const":
		s[key] = g.value(2)
	case "enum":
		s[key] = []any{g.value(2), []any{[]any{}, "only"}}
	case "minLength", "maxLength":
		s[key] = g.count()
	case "pattern":
		s[key] = g.pick("pattern", "^a", "a+b", "b$", "^(ab|a)*$", "^[^a]*$", `\bé`, "(?i)A", "^$")
	case "multipleOf":
		s[key] = json.Number(g.pick("multiple", "0.01", "1", "2", "1.5", "1e-30", "7e20").(string))
	case "exclusiveMinimum", "exclusiveMaximum":
		if g.draft == drafts[6] {
			s[key], s["minimum"], s["maximum"] = true, g.number(), g.number()
			return
		}
		s[key] = g.number()
	case "format":
		s[key] = g.pick("format", "date", "ipv4", "regex", "email", "unknown")
	default:
		s[key] = g.number()
	}
}

func (g *generator) objects(s map[string]any) {
	key := g.pick("object", "minProperties", "maxProperties", "required", "properties", "properties", "patternProperties",
		"additionalProperties", "propertyNames", "dependencies", "dependentSchemas", "dependentRequired", "unevaluatedProperties").(string)
	switch key {
	case "minProperties", "maxProperties":
		s[key] = g.count()
	case "required":
		s[key] = g.names()
	case "properties", "dependentSchemas":
		s[key] = g.schemas()
	case "patternProperties":
		s[key] = map[string]any{"^a": g.schema(), "b": g.schema()}
	case "dependencies":
		s[key] = map[string]any{g.name(): g.names(), "a": g.schema()}
	case "dependentRequired":
		s[key] = map[string]any{g.name(): g.names()}
	default:
		s[key] = g.schema()
	}
}

func (g *generator) lists(s map[string]any) {
	key := g.pick("list", "minItems", "maxItems", "uniqueItems", "items", "items", "prefixItems", "additionalItems", "contains",
		"minContains", "maxContains", "unevaluatedItems").(string)
	switch key {
	case "minItems", "maxItems", "minContains", "maxContains":
		s[key] = g.count()
	case "uniqueItems":
		s[key] = true
	case "prefixItems":
		s[key] = g.list()
	case "items":
		s[key] = g.schema()
		if g.draft != "" && rapid.Bool().Draw(g.t, "items as a list") {
			s[key], s["additionalItems"] = g.list(), g.schema()
		}
	default:
		s[key] = g.schema()
	}
}

func (g *generator) combination(s map[string]any) {
	key := g.pick("combination", "not", "allOf", "anyOf", "oneOf", "if").(string)
	switch key {
	case "not":
		s[key] = g.schema()
	case "if":
		s[key], s["then"], s["else"] = g.schema(), g.schema(), g.schema()
	default:
		s[key] = g.list()
	}
}

func (g *generator) reference(s map[string]any) {
	where := "#/definitions/"
	if g.draft == "" || g.draft == drafts[3] {
		where = "#/$defs/"
	}
	switch key := g.pick("reference", "$ref", "$ref", "$ref", "$dynamicRef", "$recursiveRef", "other resource").(string); key {
	case "$recursiveRef":
		s[key] = "#"
	case "$dynamicRef":
		s[key] = g.pick("dynamic", "#n", "#/$defs/x")
	case "other resource":
		if g.draft == "" {
			s["$id"] = g.pick("id", "one", "two", "three")
			s["$defs"] = map[string]any{"here": map[string]any{"$dynamicAnchor": "n", "allOf": g.list()}}
			s["$ref"] = g.pick("of a resource", "#/$defs/here", "one#n", "two#/$defs/here", "#n")
		}
	default:
		s[key] = g.pick("ref", where+"x", where+"y", where+"z", "#")
	}
}
