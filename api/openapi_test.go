package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
)

// operation is what the document says of an operation.
type operation struct {
	Role       access.Role `json:"x-quipu-role"`
	ID         string      `json:"operationId"`
	Summary    string
	Tags       []string
	Responses  map[string]any
	Parameters []map[string]any
}

// O10: every route is described, with its role, and everything that is described has a route.
func TestO10DocumentAndRoutes(t *testing.T) {
	t.Parallel()
	text, err := Document()
	require.NoError(t, err)
	var read struct {
		OpenAPI string
		Paths   map[string]map[string]operation
	}
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, "3.1.0", read.OpenAPI)
	described := map[string]access.Role{}
	for path, all := range read.Paths {
		for method, op := range all {
			described[strings.ToUpper(method)+" "+path] = op.Role
			require.NotEmpty(t, op.Summary, path)
			require.Len(t, op.Tags, 1, path)
			require.Contains(t, op.Responses, "default", path)
		}
	}
	routed := map[string]access.Role{}
	for _, r := range routes {
		routed[r.method+" "+r.path] = r.role
	}
	require.Equal(t, routed, described)
}

// Every code that a problem can have is in the document.
func TestO10Codes(t *testing.T) {
	t.Parallel()
	text, err := Document()
	require.NoError(t, err)
	var read struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct{ Code struct{ Enum []string } }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	codes := map[string]bool{
		access.CodeUnauthenticated: true, access.CodeForbidden: true, access.CodeCrossOrigin: true,
		access.CodeWrongHost: true,
		access.CodeTooMany:   true, access.CodeBusy: true, access.CodeUnavailable: true, CodeMalformed: true,
		CodeNoRoute: true, CodeMethod: true,
		CodeConflict: true, CodeTooLarge: true, CodeLong: true, CodeMediaType: true, CodeInternal: true,
		CodeUnknown:    true,
		CodeTimeout:    true,
		CodeIncomplete: true, CodeSlow: true, CodeFlow: true,
	}
	for _, k := range known {
		codes[k.code] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(codes)),
		slices.Sorted(slices.Values(read.Components.Schemas.Problem.Properties.Code.Enum)))
}

// Every schema is one, and every reference in the document has what it names.
func TestO10Schemas(t *testing.T) {
	t.Parallel()
	text, err := Document()
	require.NoError(t, err)
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("openapi.json", root))
	refs := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				refs++
				there := root
				for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					there = there.(map[string]any)[step]
				}
				require.NotNil(t, there, ref)
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(root)
	require.Greater(t, refs, 100)
	for name := range root.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		_, err := c.Compile("openapi.json#/components/schemas/" + name)
		require.NoError(t, err, name)
	}
}

// The page of the API names every operation with its role, and every code with its status.
func TestO10Page(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	for _, r := range routes {
		require.Regexp(t, "(?m)^\\| `"+regexp.QuoteMeta(r.method+" "+r.path)+"` \\|.*\\| "+string(r.role)+" \\|$", string(page))
	}
	for _, k := range known {
		require.Regexp(t, fmt.Sprintf("(?m)^\\|.*`%s`.*\\| %d \\|", k.code, k.status), string(page))
	}
	require.Contains(t, string(page), fmt.Sprintf("over %d requests of one caller", access.MaxOfOne))
	require.Contains(t, string(page), fmt.Sprintf("over %d requests under way", access.MaxRequests))
	require.Contains(t, string(page), fmt.Sprintf("at most %d MiB", access.DefaultMaxBody>>20))
}
