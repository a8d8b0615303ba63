package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxWidth is how many columns a line has at most. A tab counts for four.
const maxWidth = 120

func width(s string) int { return utf8.RuneCountInString(strings.ReplaceAll(s, "\t", "    ")) }

// wide are the lines that are too long. A string does not count, nor does the output of an example:
// to break a text that somebody reads or searches for makes it no easier to read.
func wide(f *file) (broken []string) {
	lines := strings.Split(string(f.source), "\n")
	texts := make([]int, len(lines)+1) // the columns of strings, by line
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			for i, part := range strings.Split(s.Value, "\n") {
				texts[f.line(s.Pos())+i-1] += width(part)
			}
		}
		return true
	})
	for _, g := range f.tree.Comments {
		if strings.HasPrefix(g.Text(), "Output:") {
			for i := f.line(g.Pos()); i <= f.line(g.End()); i++ {
				texts[i-1] = width(lines[i-1])
			}
		}
	}
	for i, line := range lines {
		if width(line)-texts[i] > maxWidth || texts[i] == 0 && width(line) > maxWidth {
			broken = append(broken, fmt.Sprintf("%s:%d: %d columns", f.path, i+1, width(line)))
		}
	}
	return broken
}

func TestLinesFit(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, f := range sources(t) {
		broken = append(broken, wide(f)...)
	}
	none(t, broken, fmt.Sprintf("lines of at most %d columns, strings aside", maxWidth))
}

func TestWidthRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 110)
	require.Len(t, wide(parse(t, "x.go", "package x\n// "+long+long+"\nvar s = `"+long+"\n"+long+long+"`\nvar t = \""+long+long+"\"\n")), 1)
	require.Empty(t, wide(parse(t, "x_test.go", "package x\nfunc ExampleX() {\n\t// Output:\n\t// "+long+long+"\n}\n")))
	require.Len(t, wide(parse(t, "x.go", "package x\nfunc f() {\n\t\t\t"+long+" = \"a\"\n}\n")), 1)
}
