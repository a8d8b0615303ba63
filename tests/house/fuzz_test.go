package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decoding are the names of functions that turn bytes or text into values.
var decoding = regexp.MustCompile(`^(Parse|Decode|Read|Unmarshal|FromCanonical)`)

// outer are the directories whose decoders are not the product's: tests, examples
// and what starts servers for them.
var outer = []string{"tests", "examples", "internal/dev", "internal/testkit", "quiputest", "cmd/demo"}

// decoders are the exported functions of a file that read bytes or text from
// outside, as dir.Name.
func decoders(f *file) (out []string) {
	if f.test() || slices.ContainsFunc(outer, func(p string) bool { return within(f.dir(), p) }) {
		return nil
	}
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Recv == nil && decoding.MatchString(fn.Name.Name) && fn.Name.IsExported() && takesText(fn) {
			out = append(out, f.dir()+"."+fn.Name.Name)
		}
	}
	return out
}

// takesText says that a parameter is bytes, text, or a function that gives text.
func takesText(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.Ident:
			return t.Name == "string"
		case *ast.ArrayType:
			e, ok := t.Elt.(*ast.Ident)
			return ok && e.Name == "byte"
		case *ast.FuncType:
			return true
		}
		return false
	})
}

// fuzzed are the names of all functions that fuzz functions of a directory, and
// helpers in their files, call.
func fuzzed(f *file) map[string]bool {
	called := map[string]bool{}
	if len(targets(f)) == 0 {
		return called
	}
	local := f.dir()
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := call.Fun
		if generic, ok := fun.(*ast.IndexExpr); ok {
			fun = generic.X
		}
		switch x := fun.(type) {
		case *ast.Ident:
			called[local+"."+x.Name] = true
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok {
				for name, spec := range imports(f) {
					if dir, ours := strings.CutPrefix(name, module+"/"); ours &&
						(spec.Name == nil && filepath.Base(dir) == pkg.Name ||
							spec.Name != nil && spec.Name.Name == pkg.Name) {
						called[dir+"."+x.Sel.Name] = true
					}
				}
			}
		}
		return true
	})
	return called
}

// targets are the fuzz functions of a file.
func targets(f *file) (out []string) {
	for _, d := range f.tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && f.test() && strings.HasPrefix(fn.Name.Name, "Fuzz") {
			out = append(out, fn.Name.Name)
		}
	}
	return out
}

// 6.4, 1: every decoder is fuzzed.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	t.Parallel()
	called := map[string]bool{}
	var all, broken []string
	for _, f := range sources(t) {
		for name := range fuzzed(f) {
			called[name] = true
		}
		all = append(all, decoders(f)...)
	}
	require.Greater(t, len(all), 10)
	for _, name := range all {
		if !called[name] {
			broken = append(broken, name)
		}
	}
	none(t, broken, "decoders that no fuzz target calls")
}

// Every fuzz target has inputs that are committed, which every test run plays.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	t.Parallel()
	var broken []string
	wanted := map[string]bool{}
	for _, f := range sources(t) {
		for _, name := range targets(f) {
			dir := filepath.Join(filepath.FromSlash(f.dir()), "testdata", "fuzz", name)
			wanted[dir] = true
			if list, err := os.ReadDir(filepath.Join(root, dir)); err != nil || len(list) == 0 {
				broken = append(broken, fmt.Sprintf("%s: %s has no inputs in %s", f.path, name, filepath.ToSlash(dir)))
			}
		}
	}
	require.NotEmpty(t, wanted)
	walk(t, func(name string, _ []byte) {
		if dir := filepath.Dir(filepath.FromSlash(name)); filepath.Base(filepath.Dir(dir)) == "fuzz" &&
			strings.Contains(dir, "testdata") && !wanted[dir] {
			broken = append(broken, name+": of no fuzz target")
		}
	})
	none(t, broken, "a fuzz target has a corpus")
}

func TestFuzzRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"flow.ParseX"}, decoders(parse(t, "flow/x.go", "package flow\nfunc ParseX(b []byte) {}\nfunc parseY(b []byte) {}\nfunc ReadZ(n int) {}\nfunc (x X) DecodeW(s string) {}")))
	require.Empty(t, decoders(parse(t, "tests/x.go", "package x\nfunc ParseX(b []byte) {}")))
	f := parse(t, "flow/x_test.go", "package flow_test\nimport \""+module+"/wire\"\nfunc FuzzX(f *testing.F) { wire.Decode[int](nil); own(nil) }")
	require.Equal(t, []string{"FuzzX"}, targets(f))
	require.True(t, fuzzed(f)["wire.Decode"] && fuzzed(f)["flow.own"])
	require.Empty(t, fuzzed(parse(t, "flow/x_test.go", "package flow\nfunc TestX(t *testing.T) { ParseX(nil) }")))
}
