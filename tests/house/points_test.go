package house

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/fault"
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

// A normal build has no fault points: without the tag and the race detector package fault is its
// names and functions that do nothing, which leave nothing behind where they are called.
func TestFaultPointsNotInNormalBuild(t *testing.T) {
	t.Parallel()
	files := map[string]*file{}
	for _, f := range sources(t) {
		if f.dir() == "internal/fault" {
			files[path.Base(f.path)] = f
		}
	}
	require.Len(t, files, 3)
	require.True(t, strings.HasPrefix(string(files["on.go"].source), "//go:build faults || race\n"))
	for _, name := range []string{"off.go", "doc.go"} {
		for _, decl := range files[name].tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				require.Empty(t, d.Body.List, "%s does something", d.Name)
			case *ast.GenDecl:
				named := d.Tok == token.VAR && d.Specs[0].(*ast.ValueSpec).Names[0].Name == "Points"
				require.True(t, named || d.Tok == token.CONST || d.Tok == token.TYPE, "%s:%d is more than a name", name, files[name].line(d.Pos()))
			}
		}
	}
}
