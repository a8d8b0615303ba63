package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// openAPI is the schema of OpenAPI 3.1 with that of its schemas, as the OpenAPI Initiative
// publishes both.
func openAPI(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	base := ""
	for _, name := range []string{"meta", "dialect", "schema", "schema-base"} {
		text, err := os.ReadFile("testdata/openapi-3.1/" + name + ".json")
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		base = v.(map[string]any)["$id"].(string)
		require.NoError(t, c.AddResource(base, v))
	}
	s, err := c.Compile(base)
	require.NoError(t, err)
	return s
}

// rules says what of the specification a document breaks that its schema cannot say.
func rules(t *testing.T, document map[string]any) (broken []string) {
	t.Helper()
	text, err := json.Marshal(document)
	require.NoError(t, err)
	var read struct {
		Tags       []struct{ Name string }
		Security   []map[string]any
		Paths      map[string]map[string]operation
		Components struct {
			SecuritySchemes map[string]any
			Parameters      map[string]map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	wrong := func(format string, a ...any) { broken = append(broken, fmt.Sprintf(format, a...)) }
	for _, s := range read.Security {
		for name := range s {
			if read.Components.SecuritySchemes[name] == nil {
				wrong("no security scheme %s", name)
			}
		}
	}
	ids, shapes := map[string]bool{}, map[string]bool{}
	for path, item := range read.Paths {
		shape := template.ReplaceAllString(path, "{}")
		if shapes[shape] {
			wrong("%s: another path is the same but for its names", path)
		}
		shapes[shape] = true
		for method, op := range item {
			at := method + " " + path
			if op.ID == "" || ids[op.ID] {
				wrong("%s: operationId %q is missing or not its own", at, op.ID)
			}
			ids[op.ID] = true
			for _, tag := range op.Tags {
				if !slices.ContainsFunc(read.Tags, func(t struct{ Name string }) bool { return t.Name == tag }) {
					wrong("%s: no tag %s", at, tag)
				}
			}
			var inPath []string
			given := map[string]bool{}
			for _, p := range op.Parameters {
				if ref, ok := p["$ref"].(string); ok {
					p = read.Components.Parameters[strings.TrimPrefix(ref, "#/components/parameters/")]
				}
				key := fmt.Sprint(p["in"], " ", p["name"])
				if given[key] {
					wrong("%s: parameter %s is given twice", at, key)
				}
				given[key] = true
				if p["in"] == "path" {
					inPath = append(inPath, fmt.Sprintf("{%s}", p["name"]))
				}
			}
			if !slices.Equal(slices.Sorted(slices.Values(inPath)),
				slices.Sorted(slices.Values(template.FindAllString(path, -1)))) {
				wrong("%s: the parameters of its path are %v", at, inPath)
			}
		}
	}
	return broken
}

var template = regexp.MustCompile(`\{[^}]*\}`)

// O10: the document keeps the rules of OpenAPI 3.1: the schema of the specification, and what the
// specification says beyond it. What breaks one is found.
func TestO10OpenAPIRules(t *testing.T) {
	t.Parallel()
	text, err := Document()
	require.NoError(t, err)
	schema := openAPI(t)
	read := func() map[string]any {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		return v.(map[string]any)
	}
	require.NoError(t, schema.Validate(read()))
	require.Empty(t, rules(t, read()))

	at := func(d map[string]any, steps ...string) map[string]any {
		for _, step := range steps {
			d = d[step].(map[string]any)
		}
		return d
	}
	for name, spoil := range map[string]func(map[string]any){
		"no version":         func(d map[string]any) { delete(at(d, "info"), "version") },
		"a key of its own":   func(d map[string]any) { at(d, "paths", "/flows", "get")["role"] = "viewer" },
		"no response":        func(d map[string]any) { at(d, "paths", "/flows", "get")["responses"] = map[string]any{} },
		"path not required":  func(d map[string]any) { delete(at(d, "components", "parameters", "Job"), "required") },
		"no place":           func(d map[string]any) { at(d, "components", "parameters", "Flow")["in"] = "body" },
		"a type in a schema": func(d map[string]any) { at(d, "components", "schemas", "ID")["type"] = "text" },
		"a count in a schema": func(d map[string]any) {
			at(d, "components", "schemas", "StartRequest", "properties", "key")["maxLength"] = "512"
		},
	} {
		d := read()
		spoil(d)
		require.Error(t, schema.Validate(d), name)
	}
	for want, spoil := range map[string]func(map[string]any){
		"not its own":          func(d map[string]any) { at(d, "paths", "/flows", "get")["operationId"] = "list" },
		"no tag":               func(d map[string]any) { at(d, "paths", "/flows", "get")["tags"] = []any{"other"} },
		"no security scheme":   func(d map[string]any) { d["security"] = []any{map[string]any{"none": []any{}}} },
		"is the same but":      func(d map[string]any) { at(d, "paths")["/jobs/{key}"] = at(d, "paths", "/jobs/{job}") },
		"the parameters of":    func(d map[string]any) { delete(at(d, "paths", "/jobs/{job}", "get"), "parameters") },
		"query flow is given ": func(d map[string]any) { at(d, "components", "parameters", "Version")["name"] = "flow" },
	} {
		d := read()
		spoil(d)
		require.Contains(t, strings.Join(rules(t, d), "\n"), strings.TrimSpace(want))
	}
}
