package guarantees

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// left are directories that hold no source of ours.
var left = []string{".git", "bin", ".quipu", "node_modules", "testdata"}

var function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// index knows the tests of the repository, by what a claim names them by.
type index struct {
	root  string
	files map[string][]string // by function: the files that have it
	fuzz  []FuzzTarget        // all targets, in the order of their names
}

// newIndex reads all test files below root.
func newIndex(root string) (*index, error) {
	x := &index{root: root, files: map[string][]string{}}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(left, path.Base(name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, m := range function.FindAllSubmatch(source, -1) {
			test := string(m[1])
			x.files[test] = append(x.files[test], name)
			if strings.HasPrefix(test, "Fuzz") {
				x.fuzz = append(x.fuzz, FuzzTarget{Package: path.Dir(name), Target: test})
			}
		}
		return nil
	})
	return x, err
}

// tests are links to test functions by name; one that several packages have is
// named as directory.Name.
func (x *index) tests(names ...string) (string, error) {
	var links []string
	for _, name := range names {
		dir, test := "", name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			dir, test = name[:i], name[i+1:]
		}
		var in []string
		for _, file := range x.files[test] {
			if dir == "" || path.Dir(file) == dir {
				in = append(in, file)
			}
		}
		if len(in) != 1 {
			return "", fmt.Errorf("test %s: it is in %d files %v: name one that is there, as directory.Test where several have it", name, len(in), in)
		}
		links = append(links, fmt.Sprintf("[%s](%s)", test, in[0]))
	}
	return strings.Join(links, ", "), nil
}

// cases is a link to a directory whose sources have the cases, of a suite that
// every implementation of a port passes.
func (x *index) cases(dir string, names ...string) (string, error) {
	files, err := filepath.Glob(filepath.Join(x.root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all.Write(source)
	}
	for i, name := range names {
		if !strings.Contains(all.String(), `"`+name) {
			return "", fmt.Errorf("%s has no case that begins with %q", dir, name)
		}
		names[i] = "“" + name + "”"
	}
	return fmt.Sprintf("[%s](%s): %s", path.Base(dir), dir, strings.Join(names, ", ")), nil
}

// file is a link to what is there.
func (x *index) file(name string) (string, error) {
	_, err := os.Stat(filepath.Join(x.root, filepath.FromSlash(name)))
	return fmt.Sprintf("[%s](%s)", path.Base(name), name), err
}
