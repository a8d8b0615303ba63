package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

// sharedTypes are what the verifier uses of collation: names of keys and numbers, and the rows that
// tables hold. It calls none of their methods, which compute for the engine.
var sharedTypes = []string{
	"DAD", "InstanceKey", // what instances and results are found by
	"ActivityLedger", "GUIDLedger", "Micros", // numbers, as the callers of replay have them
	"Row", "Wait", "Pause", "ResolvedWait", // what the tables hold, to be compared
}

// exportFiles are the files with what the packages below replay export, for the type checker. They
// are compiled with the flags of this test, so that most of them are compiled already.
func exportFiles(t *testing.T) map[string]string {
	t.Helper()
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, gobuild.Flags()...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./replay")...)
	cmd.Dir = filepath.FromSlash(root)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, at, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[name] = at
	}
	return out
}

// lent is what files of one package use of collation besides the shared types and their fields:
// functions, methods, constants, variables and other types.
func lent(t *testing.T, exports map[string]string, files []*file) (broken []string) {
	t.Helper()
	set := token.NewFileSet()
	trees := make([]*ast.File, 0, len(files))
	for _, f := range files {
		tree, err := parser.ParseFile(set, f.path, f.source, parser.SkipObjectResolution)
		require.NoError(t, err)
		trees = append(trees, tree)
	}
	open := func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: importer.ForCompiler(set, "gc", open)}).Check("x", set, trees, info)
	require.NoError(t, err)
	for name, used := range info.Uses {
		if used.Pkg() == nil || used.Pkg().Path() != module+"/collation" {
			continue
		}
		switch x := used.(type) {
		case *types.Var:
			if x.IsField() {
				continue
			}
		case *types.TypeName:
			if slices.Contains(sharedTypes, x.Name()) {
				continue
			}
		}
		broken = append(broken, fmt.Sprintf("%s: the verifier uses %s: write it in replay from the rules, and its cases in internal/testkit/readings",
			set.Position(name.Pos()), types.ObjectString(used, types.RelativeTo(nil))))
	}
	return broken
}

// What ledgers, addresses and entries mean the verifier works out by itself, so that a fault in what
// the engine decides with is not believed (2.5).
func TestVerifierWorksOutWhatItJudges(t *testing.T) {
	t.Parallel()
	exports := exportFiles(t)
	ours := slices.DeleteFunc(slices.Clone(sources(t)), func(f *file) bool { return f.dir() != "replay" || f.test() })
	require.NotEmpty(t, ours)
	none(t, lent(t, exports, ours), "the verifier shares types of collation with the engine, and nothing that computes")

	for body, want := range map[string]int{
		"var f = collation.AddressOf":                                    1,
		"const c = collation.CodeOK":                                     1,
		"var err = collation.ErrDigit":                                   1,
		"type x struct{ collation.Plan }":                                1,
		"func f(d collation.DAD) any { return d.Child() }":               1,
		"var f = collation.ActivityLedger.Leg1Complete":                  1,
		"type x struct{ collation.GUIDLedger }\nvar y = x{}.Complete()":  1,
		"func f(k collation.InstanceKey) collation.DAD { return k.DAD }": 0,
		"func f(r *collation.Row) bool { return r.Held != \"\" }":        0,
	} {
		x := parse(t, "replay/x.go", "package x\nimport \""+module+"/collation\"\n"+body)
		require.Len(t, lent(t, exports, []*file{x}), want, body)
	}
}
