package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every claim of GUARANTEES.md has a mutant that one of its tests has to notice, or is marked with
// the reason why not. A mark whose claim has a mutant, or is not on the page, goes.
func TestEveryClaimHasAMutantOrIsMarked(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/GUARANTEES.md")
	require.NoError(t, err)
	all, marks, mutants := claims(string(page)), must(t, marks), must(t, mutants)
	require.Greater(t, len(all), 50)
	shown := map[*claim]bool{}
	for _, m := range mutants {
		for _, s := range m.shows {
			for _, c := range about(all, s) {
				shown[c] = true
			}
		}
	}
	used, missing := map[string]bool{}, []string(nil)
	for _, c := range all {
		i := slices.IndexFunc(marks, func(m [2]string) bool { return strings.HasPrefix(c.says, m[0]) })
		switch {
		case i >= 0:
			require.False(t, used[marks[i][0]], "claims.txt: %q marks two claims", marks[i][0])
			used[marks[i][0]] = true
			require.False(t, shown[c], "claims.txt: a mutant shows this claim, so its mark goes: %s", c.first())
		case !shown[c]:
			missing = append(missing, c.first())
		}
	}
	require.Empty(t, missing, "write a mutant that one of the tests of each notices, or mark it in claims.txt")
	for _, m := range marks {
		require.True(t, used[m[0]], "claims.txt: no claim begins with %q", m[0])
	}
}

func must[T any](t *testing.T, read func() (T, error)) T {
	t.Helper()
	v, err := read()
	require.NoError(t, err)
	return v
}

func TestClaims(t *testing.T) {
	t.Parallel()
	all := claims("# Page\n| who | can | shown by |\n|---|---|---|\n| a stranger | do little | [TestA](a/a_test.go), [“one at once (P17)”](journal/postgres/hold_test.go) |\n" +
		"\n| no | proof |\n|---|---|\n| so | [TestB](b_test.go) |\n\n| what holds | also shown by |\n|---|---|\n| worlds | [TestSimulation](engine/sim/main_test.go) |\n")
	require.Len(t, all, 2)
	require.Equal(t, &claim{says: "a stranger do little ", tests: []named{{"TestA", "a"}, {"“one at once (P17)”", "journal/postgres"}}}, all[0])
	for s, want := range map[show]int{
		{"a", "TestA"}:      1,
		{"a", "^TestA$/of"}: 1,
		{"b", "TestA"}:      0,
		{"journal/postgres", "TestConformance/^Holds$/^one_at_once"}: 1,
		{"journal/postgres", "TestConformance/^Holds$/^another"}:     0,
		{"journal/postgres", "TestConformance/^Holds$"}:              0,
		{"internal/engine/sim", "TestSimulation"}:                    0,
	} {
		require.Len(t, about(all, s), want, "%v", s)
	}
}
