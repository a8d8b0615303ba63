package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// Every mutant changes the product as it is now, and names tests that are there.
func TestMutantsFitTheProduct(t *testing.T) {
	t.Parallel()
	all, err := mutants()
	require.NoError(t, err)
	for _, m := range all {
		changed, err := m.apply(os.DirFS(root))
		require.NoError(t, err)
		require.NotEmpty(t, changed)
		for _, s := range m.shows {
			require.True(t, has(t, s.pkg, s.test()), "mutant %s: %s has no %s", m.name, s.pkg, s.tests)
		}
	}
}

// has reports whether a package has the test.
func has(t *testing.T, pkg, test string) bool {
	names, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(names, func(name string) bool {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		return strings.Contains(string(source), "\nfunc "+test+"(")
	})
}

func TestEdits(t *testing.T) {
	t.Parallel()
	const head = "A guard (C5).\nnoticed by a/b ^TestX$/y\nnoticed by c TestY\n\n"
	m, err := parse("x", head+"a.go\n-one\n-\ttwo\n+three\n-four\n\nb.go\n-five\n\n-six\n+\n+seven\n")
	require.NoError(t, err)
	require.Equal(t, &mutant{"x", "A guard (C5).", []show{{"a/b", "^TestX$/y"}, {"c", "TestY"}}, []edit{
		{"a.go", "one\n\ttwo", "three"}, {"a.go", "four", ""}, {"b.go", "five", ""}, {"b.go", "six", "\nseven"},
	}}, m)
	product := fstest.MapFS{"a.go": {Data: []byte("one\n\ttwo four\n")}, "b.go": {Data: []byte("five six")}}
	changed, err := m.apply(product)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.go": "three \n", "b.go": " \nseven"}, changed)
	product["b.go"].Data = []byte("six six five")
	_, err = m.apply(product)
	require.ErrorContains(t, err, "b.go has 2 times")
	delete(product, "b.go")
	_, err = m.apply(product)
	require.Error(t, err)
	for _, bad := range []string{"", "A guard (C5).\n\na.go\n-one\n", head, head + "a.go\n", head + "-one\n", head + "a.go\n+one\n", head + "a.go\n-one\n/b.go\n"} {
		_, err := parse("x", bad)
		require.Error(t, err, bad)
	}
}

func TestWhatBrokeIsRead(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"--- FAIL: TestSimulation\n main_test.go:7: killed after 13 seeds by seed 13: I6: a row\n":                                        "I6: a row",
		"--- FAIL: TestX (0.1s)\npanic: no\n":                                                                                             "panic: no",
		"--- FAIL: TestX (0.1s)\n    --- FAIL: TestX/a (0.1s)\n    --- FAIL: TestX/b (0s)\nFAIL\n":                                        "TestX/a",
		"--- FAIL: TestX (0.1s)\n  x_test.go:7:\n  \tError:      \tno\n  \tMessages:   \tb (C5)\n--- FAIL: TestY (0s)\n  \tError:  \ty\n": "TestX: b (C5)",
		"no server": "",
	} {
		seeds, what := broken(out)
		require.Equal(t, want, what)
		require.Equal(t, what == "I6: a row", seeds == 13)
	}
}
