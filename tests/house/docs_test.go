package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// undocumented are the exported names of a file that have no doc comment: types,
// functions, methods of exported types and of exported interfaces, constants
// and variables. A comment on a group of constants or variables is enough for
// all in it.
func undocumented(f *file) (broken []string) {
	miss := func(n ast.Node, name string) {
		broken = append(broken, fmt.Sprintf("%s:%d: %s", f.path, f.line(n.Pos()), name))
	}
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) && d.Doc == nil {
				miss(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				undocumentedSpec(d, spec, miss)
			}
		}
	}
	return broken
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec, miss func(ast.Node, string)) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		if s.Doc == nil && (d.Doc == nil || d.Lparen != token.NoPos) {
			miss(s, s.Name.Name)
		}
		i, ok := s.Type.(*ast.InterfaceType)
		if !ok {
			return
		}
		for _, m := range i.Methods.List {
			for _, name := range m.Names {
				if name.IsExported() && m.Doc == nil && m.Comment == nil {
					miss(m, s.Name.Name+"."+name.Name)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				miss(s, name.Name)
			}
		}
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	none(t, each(t, undocumented), "every exported name has a doc comment")
}

// packageDoc is what is wrong with the comment of a package's doc.go.
func packageDoc(f *file) string {
	want := "Package " + f.tree.Name.Name + " "
	if f.tree.Name.Name == "main" {
		want = "" // a command's comment begins with its name
	}
	if f.tree.Doc == nil || !strings.HasPrefix(f.tree.Doc.Text(), want) {
		return fmt.Sprintf("%s: its comment does not begin with %q", f.path, want)
	}
	return ""
}

func TestEveryPackageHasADocFile(t *testing.T) {
	t.Parallel()
	var broken []string
	documented, dirs := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		dirs[f.dir()] = true
		if f.path == "doc.go" || strings.HasSuffix(f.path, "/doc.go") {
			documented[f.dir()] = true
			if wrong := packageDoc(f); wrong != "" {
				broken = append(broken, wrong)
			}
		}
	}
	for dir := range dirs {
		if !documented[dir] {
			broken = append(broken, dir+": no doc.go")
		}
	}
	none(t, broken, "every package explains its idea and the way in in doc.go")
}

func TestDocRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	source := func(body string) *file { return parse(t, "x.go", body) }
	for _, body := range []string{
		"type T struct{}", "type (T int)", "func F() {}", "// T is.\ntype T int\nfunc (t *T) M() {}",
		"const C = 1", "var (\n\tV = 1\n)", "// I is.\ntype I interface { M() }", "// T is.\ntype T[P any] int\nfunc (t *T[P]) M() {}",
	} {
		require.Len(t, undocumented(source("package x\n"+body)), 1, body)
	}
	for _, body := range []string{
		"type t struct{}\nfunc (t) M() {}", "// Cs are.\nconst (\n\tA = 1\n\tB = 2\n)", "const (\n\tA = 1 // one\n)",
		"// F does.\nfunc F() {}", "// I is.\ntype I interface {\n\t// M does.\n\tM()\n}",
	} {
		require.Empty(t, undocumented(source("package x\n"+body)), body)
	}
	require.Empty(t, packageDoc(source("// Package x is.\npackage x")))
	require.NotEmpty(t, packageDoc(source("package x")))
	require.NotEmpty(t, packageDoc(source("// x is.\npackage x")))
	require.NotEmpty(t, packageDoc(source("package main")))
}
