package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fronts are the packages that somebody outside imports.
var fronts = []string{
	".", "flow", "workers", "effects", "quiputest", "telemetry", "telemetry/observer", "view",
	"api", "api/access", "journal", "journal/export", "replay",
}

// readable are packages that can be imported, so that they can be read. Nobody is promised anything
// about them, and no front shows their types, but for replay: it proves the ledgers of collation.
var readable = []string{"collation", "transport", "transport/nats", "journal/postgres"}

const golden = "testdata/api.txt"

// TestPublicAPI holds the public API to a file with one line a name, so that each change of it is
// seen. Whoever means the change writes the file anew, and says in CHANGELOG.md what users do.
func TestPublicAPI(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, f := range sources(t) {
		if slices.Contains(fronts, f.dir()) && !f.test() {
			lines = append(lines, public(f)...)
		}
	}
	slices.Sort(lines)
	now := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(now), 0o600))
	}
	was, err := os.ReadFile(golden)
	require.NoError(t, err)
	none(t, changes(string(was), now), "the public API has changed: `go test ./tests/house -run PublicAPI -update` if it shall")
}

// changes are the lines that only one of two texts has.
func changes(was, now string) (all []string) {
	before, after := strings.Split(was, "\n"), strings.Split(now, "\n")
	for _, line := range before {
		if !slices.Contains(after, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			all = append(all, "+ "+line)
		}
	}
	return all
}

// TestNothingElseCanBeImported holds the number of packages that strangers can import to those that
// are meant.
func TestNothingElseCanBeImported(t *testing.T) {
	t.Parallel()
	none(t, each(t, func(f *file) []string {
		dir := f.dir()
		if f.tree.Name.Name == "main" || strings.Contains("/"+dir+"/", "/internal/") || within(dir, "tests") || within(dir, "examples") ||
			within(dir, "cmd") || slices.Contains(fronts, dir) || slices.Contains(readable, dir) {
			return nil
		}
		return []string{dir}
	}), "a package that no user imports stands below internal/")
}

// TestFrontsShowNoBackRooms holds that the types of what is exported are types of fronts.
func TestFrontsShowNoBackRooms(t *testing.T) {
	t.Parallel()
	none(t, each(t, func(f *file) []string {
		if !slices.Contains(fronts, f.dir()) {
			return nil
		}
		return leaks(f)
	}), "a front package shows its users no type of a package that they do not import")
}

// seeAll calls see with each exported declaration of a file: its name, and the parts of its type
// that a user sees.
func seeAll(f *file, see func(name string, parts ...ast.Node)) {
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				see(title(d), d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				seeSpec(d.Tok, spec, see)
			}
		}
	}
}

// title is a function's name with its receiver or its type parameters.
func title(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return "func " + d.Name.Name + parameters(d.Type.TypeParams)
	}
	return "method (" + types.ExprString(d.Recv.List[0].Type) + ") " + d.Name.Name
}

// parameters are type parameters, as they are written.
func parameters(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var all []string
	for _, field := range list.List {
		for _, name := range field.Names {
			all = append(all, name.Name+" "+types.ExprString(field.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func seeSpec(kind token.Token, spec ast.Spec, see func(name string, parts ...ast.Node)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			if s.Type != nil {
				see(kind.String()+" "+name.Name, s.Type)
			} else {
				see(kind.String() + " " + name.Name)
			}
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			seeType(s, see)
		}
	}
}

func seeType(s *ast.TypeSpec, see func(name string, parts ...ast.Node)) {
	name := "type " + s.Name.Name + parameters(s.TypeParams)
	members, kind := (*ast.FieldList)(nil), ""
	switch t := s.Type.(type) {
	case *ast.StructType:
		members, kind = t.Fields, " struct"
	case *ast.InterfaceType:
		members, kind = t.Methods, " interface"
	default:
		if s.Assign != 0 {
			name += " ="
		}
		see(name, s.Type)
		return
	}
	see(name + kind)
	for _, m := range members.List {
		if len(m.Names) == 0 {
			see(name+kind+", embedded", m.Type)
		}
		for _, n := range m.Names {
			if n.IsExported() {
				see(name+kind+", "+n.Name, m.Type)
			}
		}
	}
}

// public are the lines of a file in the golden file.
func public(f *file) (lines []string) {
	seeAll(f, func(name string, parts ...ast.Node) {
		line := "pkg " + strings.TrimPrefix(f.dir(), "./") + ", " + name
		if f.dir() == "." {
			line = "pkg quipu, " + name
		}
		for _, p := range parts {
			line += " " + shape(p.(ast.Expr))
		}
		lines = append(lines, strings.ReplaceAll(line, " func(", "("))
	})
	return lines
}

// shape is a type without the names of parameters.
func shape(t ast.Expr) string {
	f, ok := t.(*ast.FuncType)
	if !ok {
		return types.ExprString(t)
	}
	var b bytes.Buffer
	list := func(fields *ast.FieldList) (n int) {
		if fields == nil {
			return 0
		}
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				if n++; n > 1 {
					b.WriteString(", ")
				}
				b.WriteString(shape(field.Type))
			}
		}
		return n
	}
	b.WriteString("func(")
	list(f.Params)
	b.WriteString(")")
	if f.Results != nil {
		b.WriteString(" (")
		list(f.Results)
		b.WriteString(")")
	}
	return b.String()
}

// leaks are the types of back rooms in what a file exports.
func leaks(f *file) (broken []string) {
	back := map[string]string{}
	for path, spec := range imports(f) {
		dir, ours := strings.CutPrefix(path, module+"/")
		inside, read := strings.Contains("/"+dir+"/", "/internal/"), slices.Contains(readable, dir) && f.dir() != "replay"
		if !ours || !inside && !read {
			continue
		}
		local := dir[strings.LastIndex(dir, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		back[local] = dir
	}
	seeAll(f, func(name string, parts ...ast.Node) {
		for _, p := range parts {
			ast.Inspect(p, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && back[x.Name] != "" {
					broken = append(broken, fmt.Sprintf("%s:%d: %s shows %s.%s", f.path, f.line(s.Pos()), name, x.Name, s.Sel.Name))
				}
				return true
			})
		}
	})
	return broken
}

func TestAPIRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	const head = "package x\nimport (\n\"" + module + "/internal/store\"\nthere \"" + module + "/collation\"\n\"" + module + "/journal\"\n)\n"
	for _, body := range []string{
		"func F() store.Job", "func (r *R) M(x []there.DAD)", "type T = there.X", "type T struct { A *store.Report }",
		"type T struct { store.Job }", "type T interface { M(x store.Job) }", "var X store.Job",
	} {
		require.Len(t, leaks(parse(t, "x.go", head+body)), 1, body)
	}
	for _, body := range []string{
		"func f() store.Job", "type t struct { A store.Job }", "type T struct { a store.Job }", "func F() journal.JobID",
		"func (r *r) M(x store.Job)",
	} {
		require.Empty(t, leaks(parse(t, "x.go", head+body)), body)
	}
	require.Equal(t, []string{
		"pkg x, func F[T any](journal.JobID, ...int) (T, error)", "pkg x, method (*R) M()", "pkg x, const A",
		"pkg x, type S struct", "pkg x, type S struct, B string", "pkg x, type I interface", "pkg x, type I interface, M(int) (error)", "pkg x, type C[T any] []T",
	}, public(parse(t, "x/x.go", head+"func F[T any](id journal.JobID, n ...int) (v T, err error) { return }\nfunc (r *R) M() {}\nconst A, b = 1, 2\n"+
		"type S struct { B string; c int }\ntype I interface { M(n int) error }\ntype C[T any] []T\n")))
	require.Equal(t, []string{"- b", "+ c"}, changes("a\nb", "a\nc"))
}
