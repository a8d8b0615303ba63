package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/access"
)

// described is what the document says of an operation.
type operation struct {
	Role access.Role `json:"x-quipu-role"`
	ID   string      `json:"operationId"`
}

// O10: the document is a valid one, every route is described, with its role, and everything that
// is described has a route.
func TestO10DocumentAndRoutes(t *testing.T) {
	t.Parallel()
	text, err := Document()
	require.NoError(t, err)
	doc, err := libopenapi.NewDocument(text)
	require.NoError(t, err)
	v, errs := validator.NewValidator(doc)
	require.Empty(t, errs)
	ok, wrong := v.ValidateDocument()
	require.True(t, ok, "%v", wrong)

	var read struct {
		Paths map[string]map[string]operation
	}
	require.NoError(t, json.Unmarshal(text, &read))
	described, ids := map[string]access.Role{}, map[string]bool{}
	for path, all := range read.Paths {
		for method, op := range all {
			described[strings.ToUpper(method)+" "+path] = op.Role
			require.False(t, ids[op.ID], "two operations %s", op.ID)
			ids[op.ID] = true
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
		access.CodeUnauthenticated: true, access.CodeForbidden: true, access.CodeCrossOrigin: true, access.CodeWrongHost: true,
		access.CodeTooMany: true, access.CodeBusy: true, access.CodeUnavailable: true, CodeMalformed: true, CodeNoRoute: true, CodeMethod: true,
		CodeConflict: true, CodeTooLarge: true, CodeMediaType: true, CodeInternal: true, CodeUnknown: true, CodeTimeout: true,
	}
	for _, k := range known {
		codes[k.code] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(codes)), slices.Sorted(slices.Values(read.Components.Schemas.Problem.Properties.Code.Enum)))
}
