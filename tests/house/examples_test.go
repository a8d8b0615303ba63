package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alone imports the root package and no other: what other packages give has no type then,
// and what the root package gives has one, without anything being compiled.
type alone struct{ root *types.Package }

func (a alone) Import(name string) (*types.Package, error) {
	if name == module && a.root != nil {
		return a.root, nil
	}
	return nil, errors.New("its types are not looked at")
}

// typed checks files as one package, as far as its types are known.
func typed(
	t *testing.T, set *token.FileSet, root *types.Package, files []*file, bodies bool,
) (*types.Package, *types.Info, []*ast.File) {
	t.Helper()
	trees := make([]*ast.File, len(files))
	for i, f := range files {
		var err error
		trees[i], err = parser.ParseFile(set, f.path, f.source, parser.SkipObjectResolution)
		require.NoError(t, err)
	}
	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{},
	}
	cfg := types.Config{Importer: alone{root}, IgnoreFuncBodies: !bodies, Error: func(error) {}}
	pkg, _ := cfg.Check(module, set, trees, info) // it is not whole
	return pkg, info, trees
}

// exported are the names that a package shows: types, functions, constants, variables, and
// methods as Type.Method. Error is called by whoever prints an error.
func exported(pkg *types.Package) map[types.Object]string {
	names := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		names[object] = name
		own, ok := object.Type().(*types.Named)
		if !ok || own.Obj() != object {
			continue
		}
		for m := range own.Methods() {
			if m.Exported() && m.Name() != "Error" {
				names[m] = name + "." + m.Name()
			}
		}
	}
	return names
}

// named calls yield with every named type that a type is made of.
func named(t types.Type, yield func(types.Object)) {
	switch t := t.(type) {
	case *types.Alias:
		yield(t.Obj())
	case *types.Named:
		yield(t.Obj())
	case *types.Pointer:
		named(t.Elem(), yield)
	case *types.Slice:
		named(t.Elem(), yield)
	case *types.Map:
		named(t.Key(), yield)
		named(t.Elem(), yield)
	case *types.Tuple:
		for v := range t.Variables() {
			named(v.Type(), yield)
		}
	}
}

// ownTest says that a declaration is a test, which nobody reads as documentation.
func ownTest(d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	return ok && fn.Recv == nil && slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz"}, func(kind string) bool {
		return strings.HasPrefix(fn.Name.Name, kind)
	})
}

// unmentioned are the exported names of the root package that the examples do not mention:
// no identifier of an example, or of a helper beside it, means one, and no expression there
// has its type.
func unmentioned(t *testing.T, root, examples []*file) (broken []string) {
	t.Helper()
	set := token.NewFileSet()
	pkg, _, _ := typed(t, set, nil, root, false)
	_, info, trees := typed(t, set, pkg, examples, true)
	names := exported(pkg)
	met := func(o types.Object) {
		if method, ok := o.(*types.Func); ok {
			o = method.Origin() // a method of a generic type stands once among the names
		}
		delete(names, o)
	}
	for _, tree := range trees {
		for _, d := range tree.Decls {
			if ownTest(d) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && info.Uses[id] != nil {
					met(info.Uses[id])
				} else if ok && info.Defs[id] != nil {
					named(info.Defs[id].Type(), met)
				}
				if x, ok := n.(ast.Expr); ok {
					named(info.Types[x].Type, met)
				}
				return true
			})
		}
	}
	for object, name := range names {
		at := set.Position(object.Pos())
		broken = append(broken, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, name))
	}
	return broken
}

// facade are the files of the root package, and its examples with what they have in common.
func facade(t *testing.T) (root, examples []*file) {
	t.Helper()
	for _, f := range sources(t) {
		ok, _ := path.Match("example*_test.go", f.path) // the pattern is a right one
		switch {
		case ok, f.path == "main_test.go":
			examples = append(examples, f)
		case f.dir() == "." && !f.test():
			root = append(root, f)
		}
	}
	return root, examples
}

func TestExamplesMentionTheWholeFacade(t *testing.T) {
	t.Parallel()
	root, examples := facade(t)
	none(t, unmentioned(t, root, examples), "a user can see each exported name of the root package at work, in an example*_test.go")
	root = append(root, parse(t, "x.go", "package quipu\n\n// MadeUp is in no example.\nfunc (*Runtime) MadeUp() {}"))
	require.Equal(t, []string{"x.go:4: Runtime.MadeUp"}, unmentioned(t, root, examples))
}

func TestExampleRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	root := []*file{parse(t, "x.go", `package quipu
import "elsewhere"
type T struct { F Field }
type Field int
type Alias = elsewhere.T
type fails struct{}
func (T) Method() (*Result, error)
type Result struct{}
func (Result) Error() string
func Open(o ...Option) []T
type Option interface { option() }
const Max = elsewhere.Max
var ErrOf = elsewhere.Err
func As[X any](x elsewhere.T) X`)}
	all := []string{"Alias", "As", "ErrOf", "Field", "Max", "Open", "Option", "Result", "T", "T.Method"}
	for body, want := range map[string][]string{
		"func Example() {}":                                                                                 nil,
		"func Example() { println(quipu.Max) }":                                                             {"Max"},
		"func TestOf() { println(quipu.Max) }":                                                              nil,
		"func help(quipu.Alias) {}":                                                                         {"Alias"},
		"type T struct { o quipu.Option }":                                                                  {"Option"},
		"const m = quipu.Max\nfunc Example() { println(quipu.Open) }":                                       {"Max", "Open"},
		"func Example() { for _, x := range quipu.Open() { elsewhere.F(x.F) } }":                            {"Open", "T", "Field"},
		"func Example() { x, err := quipu.Open()[0].Method(); elsewhere.Is(err, quipu.ErrOf) }":             {"Open", "T", "T.Method", "Result", "ErrOf"},
		"func Example() { elsewhere.Do(func(x elsewhere.X) { x.Y(quipu.As[quipu.Field](elsewhere.T{})) })}": {"As", "Field"},
	} {
		var got []string
		for _, line := range unmentioned(t, root, []*file{parse(t, "example_test.go", "package quipu_test\nimport (\n\"elsewhere\"\n\""+module+"\"\n)\n"+body)}) {
			_, name, _ := strings.Cut(line, ": ")
			got = append(got, name)
		}
		require.ElementsMatch(t, slices.DeleteFunc(slices.Clone(all), func(n string) bool {
			return slices.Contains(want, n)
		}), got, body)
	}
}
