package house

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// hidden are packages whose types are none of a user's business.
var hidden = []string{
	"store", "collation", "replay", "engine", "postgres", "nats", "history", "inspect", "trace", "repair", "process", "memstore", "misfit",
}

// leaks are the types of hidden packages in what a file exports: signatures, and fields of
// structs.
func leaks(f *file) (broken []string) {
	look := func(name string, n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) && name[0] == '.' {
				return false
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && slices.Contains(hidden, x.Name) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s shows %s.%s", f.path, f.line(s.Pos()), name, x.Name, s.Sel.Name))
				}
			}
			return true
		})
	}
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
					look("."+s.Name.Name, s.Type)
				}
			}
		}
	}
	return broken
}

func TestFacadeHidesTheMachine(t *testing.T) {
	t.Parallel()
	none(t, each(t, func(f *file) []string {
		if f.dir() != "." && f.dir() != "quiputest" {
			return nil
		}
		return leaks(f)
	}), "the root package and quiputest have types of their own for what users see")
}

func TestFacadeRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"func F() store.Job", "func (r *R) M(x []collation.DAD)", "type T = engine.X", "type T struct { A *replay.Report }",
		"type T struct { store.Job }",
	} {
		require.Len(t, leaks(parse(t, "x.go", "package x\n"+body)), 1, body)
	}
	for _, body := range []string{"func f() store.Job", "type t struct { A store.Job }", "type T struct { a store.Job }", "func F() journal.JobID"} {
		require.Empty(t, leaks(parse(t, "x.go", "package x\n"+body)), body)
	}
}
