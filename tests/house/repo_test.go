package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path of the module.
const module = "github.com/quipu-journal/quipu"

// root is the module's directory, seen from this package.
const root = "../.."

// left lists directories at the root that hold no source: what .gitignore names.
var left = []string{".git", "bin", ".quipu"}

// written are directories, anywhere, into which npm puts packages and a property the input that broke
// it; .gitignore names them too.
var written = []string{"node_modules", "rapid"}

// file is one Go file of the repository, whatever its build tags.
type file struct {
	path   string // from the root, with slashes
	source []byte
	set    *token.FileSet
	tree   *ast.File
}

// dir is the directory of the file's package, "." for the root.
func (f *file) dir() string { return path.Dir(f.path) }

func (f *file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *file) line(p token.Pos) int { return f.set.Position(p).Line }

// parse makes a file of a source.
func parse(t *testing.T, name, source string) *file {
	t.Helper()
	f := &file{path: name, source: []byte(source), set: token.NewFileSet()}
	var err error
	f.tree, err = parser.ParseFile(f.set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

// contents are all regular files of the repository, by their names; read once.
var contents = sync.OnceValues(func() (map[string][]byte, error) {
	out := map[string][]byte{}
	return out, readAll(func(name string, content []byte) { out[name] = content })
})

// walk calls visit with every regular file of the repository.
func walk(t *testing.T, visit func(name string, content []byte)) {
	t.Helper()
	all, err := contents()
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		visit(name, all[name])
	}
}

func readAll(visit func(name string, content []byte)) error {
	top := os.DirFS(root)
	return fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a temporary file of somebody else that has gone
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(left, name) || slices.Contains(written, path.Base(name))):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(top, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			visit(name, content)
		}
		return err
	})
}

// sources are all Go files of the repository, parsed; once for all tests, which read
// them.
func sources(t *testing.T) []*file {
	t.Helper()
	parsed.Do(func() {
		walk(t, func(name string, content []byte) {
			if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") {
				all = append(all, parse(t, name, string(content)))
			}
		})
	})
	require.NotEmpty(t, all)
	return all
}

var (
	parsed sync.Once
	all    []*file
)

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Deps       []string
}

// list asks `go list` for packages and all that they depend on.
func list(t *testing.T, patterns ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Deps"}, patterns...)...)
	cmd.Dir = filepath.FromSlash(root)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var out []listed
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, p)
	}
}

// none fails with what breaks a rule, and says what the rule is for.
func none(t *testing.T, broken []string, rule string) {
	t.Helper()
	if len(broken) > 0 {
		slices.Sort(broken)
		t.Errorf("%s:\n  %s", rule, strings.Join(slices.Compact(broken), "\n  "))
	}
}
