package house

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev/gobuild"
	"github.com/quipu-journal/quipu/fault"
)

// 6.2: each fault point is at one place of the code.
func TestFaultPointsExistOnce(t *testing.T) {
	t.Parallel()
	at := map[string][]string{}
	for _, f := range sources(t) {
		if f.test() || within(f.dir(), "tests") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, "fault", "At") && len(call.Args) == 2 {
				point, ok := call.Args[0].(*ast.SelectorExpr)
				require.True(t, ok, "%s:%d: a fault point is named where it is", f.path, f.line(call.Pos()))
				at[point.Sel.Name] = append(at[point.Sel.Name], f.path)
			}
			return true
		})
	}
	for _, p := range fault.Points {
		assert.Len(t, at[string(p)], 1, "%s is at %v", p, at[string(p)])
		delete(at, string(p))
	}
	require.Empty(t, at, "points that package fault does not list")
}

func selects(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == of
}

// A normal build has no fault points; one with the tag has them.
func TestFaultPointsNotInNormalBuild(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]bool{"faults": true, "": false} {
		program := filepath.Join(t.TempDir(), "worker")
		require.NoError(t, gobuild.Build(root, program, "-tags", tag, "./cmd/worker"))
		symbols, err := exec.Command("go", "tool", "nm", program).Output()
		require.NoError(t, err)
		assert.Equal(t, want, strings.Contains(string(symbols), module+"/fault."), "symbols of package fault, with the tags %q", tag)
	}
}
