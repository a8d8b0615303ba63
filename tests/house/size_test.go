package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits of what a person reads in one go.
const (
	maxFunction = 70  // lines, from func to its closing brace; literals as well
	maxFile     = 500 // lines
)

// long are a file's parts that are too long.
func long(f *file) (broken []string) {
	if n := bytes.Count(f.source, []byte("\n")); n > maxFile {
		broken = append(broken, fmt.Sprintf("%s: %d lines, the limit is %d", f.path, n, maxFile))
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		var name string
		switch fn := n.(type) {
		case *ast.FuncDecl:
			name = fn.Name.Name
		case *ast.FuncLit:
			name = "a function literal"
		default:
			return true
		}
		from, to := f.line(n.Pos()), f.line(n.End()-1)
		if length := to - from + 1; length > maxFunction {
			broken = append(broken, fmt.Sprintf("%s:%d: %s has %d lines, the limit is %d", f.path, from, name, length, maxFunction))
		}
		return true
	})
	return broken
}

func TestFunctionsAndFilesAreShort(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, f := range sources(t) {
		broken = append(broken, long(f)...)
	}
	none(t, broken, "functions fit on a screen, files on a few")
}

func TestSizeRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	function := func(lines int) string { return "func f() {" + strings.Repeat("\n", lines-1) + "}\n" }
	require.Empty(t, long(parse(t, "x.go", "package x\n"+function(maxFunction))))
	require.Len(t, long(parse(t, "x.go", "package x\n"+function(maxFunction+1))), 1)
	require.Len(t, long(parse(t, "x.go", "package x\nvar _ = "+strings.Replace(function(maxFunction+1), " f", "", 1))), 1)
	require.Empty(t, long(parse(t, "x.go", "package x\n"+strings.Repeat("\n", maxFile-1))))
	require.Len(t, long(parse(t, "x.go", "package x\n"+strings.Repeat("\n", maxFile))), 1)
}
