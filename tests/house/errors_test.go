package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	errorRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	anError  = regexp.MustCompile(`^\*?((?:\w+\.)?(?:Err[A-Z]\w*|\w+Error))$`)
	codeRow  = regexp.MustCompile(`(?m)^\| ([0-9]+) \|`)
	codeItem = regexp.MustCompile(`(?m)^- ([0-9]+): `)
)

// errorNames are the exported errors that a file declares: variables Err… and types …Error.
func errorNames(f *file) (names []string) {
	for _, d := range f.tree.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if strings.HasPrefix(name.Name, "Err") && group.Tok == token.VAR {
						names = append(names, name.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() && len(s.Name.Name) > len("Error") && strings.HasSuffix(s.Name.Name, "Error") {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

// firsts are what an expression finds in a text, by its first group, sorted.
func firsts(r *regexp.Regexp, text string) (out []string) {
	for _, m := range r.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

// between is the text behind one mark and before the next.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	require.True(t, found, from)
	rest, _, _ = strings.Cut(rest, to)
	return rest
}

// errorsOf are the errors in the first column of the tables of a page, sorted.
func errorsOf(page string) (names []string) {
	for _, row := range firsts(errorRow, page) {
		for _, span := range spans(row) {
			names = append(names, firsts(anError, span)...)
		}
	}
	slices.Sort(names)
	return names
}

// The errors of the packages that users call and of docs/errors.md are the same, each once.
func TestErrorsAreDocumented(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range sources(t) {
		prefix, ok := map[string]string{".": "", "effects": "effects.", "workers": "workers."}[f.dir()]
		if !ok || f.test() {
			continue
		}
		for _, name := range errorNames(f) {
			names = append(names, prefix+name)
		}
	}
	slices.Sort(names)
	require.Equal(t, names, errorsOf(read(t, "docs/errors.md")))

	f := parse(t, "x.go", "package x\nvar ErrA = 1\nvar (\n\tErrB, errC = 2, 3\n\tD = 4\n)\ntype BadError struct{}\ntype badError int\ntype Error = int")
	require.Equal(t, []string{"ErrA", "ErrB", "BadError"}, errorNames(f))
	require.Equal(t, []string{"BadError", "ErrA", "x.ErrB"}, errorsOf("| `ErrA`, `x.ErrB` | x |\n| `*BadError` | `ErrB` |\n| `C` | x |\n| 1 | `ErrC` |"))
}

// The exit codes of docs/errors.md are those of the pages of the commands.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	page, cli := read(t, "docs/errors.md"), read(t, "docs/cli.md")
	for name, command := range map[string]string{"worker": "\n### `worker dev`\n", "quipu": "\n## `quipu`\n"} {
		want := firsts(codeItem, between(t, cli, command, "\n##"))
		require.NotEmpty(t, want)
		require.Equal(t, want, firsts(codeRow, between(t, page, "<!-- codes "+name+" -->", "<!-- ")), name)
	}
	want := firsts(codeRow, between(t, read(t, "docs/verify.md"), "\n## Exit codes\n", "\n## "))
	require.NotEmpty(t, want)
	require.Equal(t, want, firsts(codeRow, between(t, page, "<!-- codes journal-verify -->", "<!-- ")))
}
