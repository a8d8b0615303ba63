package guarantees

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write GUARANTEES.md anew")

const root = "../.."

// GUARANTEES.md is what is rendered from the claims and from the counts of the
// tree; every test that it names is there.
func TestGuaranteesAreRendered(t *testing.T) {
	t.Parallel()
	text, err := Render(root)
	require.NoError(t, err)
	file := filepath.Join(root, "GUARANTEES.md")
	if *update {
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	stands, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), string(stands), "make guarantees writes it anew")
}

// Every scenario and every invariant of docs/rules.md has a row, which names a
// test or says that it is not in this build.
func TestGuaranteesAreComplete(t *testing.T) {
	t.Parallel()
	text, err := Render(root)
	require.NoError(t, err)
	for letter, last := range map[string]int{"P": 32, "I": 13} {
		for n := 1; n <= last; n++ {
			row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s%d \|.*\|$`, letter, n)).FindAllString(string(text), -1)
			require.Len(t, row, 1, "%s%d has one row", letter, n)
			named := strings.Contains(row[0], "](") || strings.Contains(row[0], "not in this build")
			require.True(t, named, row[0])
		}
	}
}

// Every script, and every target of make, that is named is there.
func TestGuaranteesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	text, err := Render(root)
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("`make ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, string(makefile), "\n"+m[1]+":")
	}
	for _, m := range regexp.MustCompile(`scripts/[a-z-]+`).FindAllString(string(text), -1) {
		require.FileExists(t, filepath.Join(root, m))
	}
}

func TestClaimsNameTests(t *testing.T) {
	t.Parallel()
	x, err := newIndex(root)
	require.NoError(t, err)
	_, err = x.tests("TestThatIsNotThere")
	require.ErrorContains(t, err, "TestThatIsNotThere")
	_, err = x.tests("TestMain")
	require.ErrorContains(t, err, "several")
	link, err := x.tests("flow.FuzzParse", "TestClaimsNameTests")
	require.NoError(t, err)
	require.Equal(t, "[FuzzParse](flow/fuzz_test.go), [TestClaimsNameTests](tests/guarantees/render_test.go)", link)
	_, err = x.cases("journal/journaltest", "a case that is not there")
	require.Error(t, err)
}

// What was counted stands in the text, also what failed.
func TestCountsAreShown(t *testing.T) {
	t.Parallel()
	c := counts{
		sim: &Sim{Run: Run{Date: "2026-01-02", Commit: "abc", Seconds: 60, CPU: 59}, From: 7, Seeds: 12345, Failed: 2},
		mutants: &Mutants{Limit: 2000, Guards: []Mutant{
			{"dispatch_row", 13, "I6: a | b", false}, {"lease", 0, "", false}, {"receipt", 0, "panic", false}, {"rows", 0, "TestX", true}, {"claim", 0, "", true},
		}},
		faults: &Faults{Cells: []Cell{
			{Point: "K1", Fault: "F1", Mode: "normal", Result: Passed, MS: 1200, Kills: 3},
			{Point: "K1", Fault: "F1", Mode: "stepwise", Result: Failed, Note: "I6"},
			{Point: "K10", Fault: "F10", Mode: "normal", Result: Passed},
			{Point: "K2", Fault: "F10", Mode: "normal", Result: NotRun, Note: "no disk"},
		}},
		chaos: &Chaos{Rounds: 3, Failed: 1, Jobs: 1000, Events: map[string]int{"kill": 12, "consumer": 2}, LatestMS: 1500},
		fuzz:  &Fuzz{Targets: []FuzzTarget{{Package: "flow", Target: "FuzzParse", Executions: 1000000, Failed: true}}},
	}
	require.Equal(t, "12 345 worlds from seed 7 on, **2 failed**; 206 worlds/s, 0 calls and 0 commits in all. 2026-01-02, commit abc, 60 s (59 s of processor time).\n", c.simulated())
	require.Contains(t, c.mutated(), "| dispatch_row | 13 | I6: a \\| b |\n| lease | **not noticed** in 2 000 |  |\n| receipt | the process died | panic |\n| rows | a test | TestX |\n| claim | **not noticed** |  |\n\n5 guards, 2 not noticed.")
	require.Contains(t, c.faulted(), "| | K1 | K2 | K10 |\n|---|---|---|---|\n| F1 | ✓✗ |  |  |\n| F10 |  | – | ✓ |\n")
	require.Contains(t, c.faulted(), "\n- K1, F1, stepwise: failed. I6\n- K2, F10, normal: not run. no disk\n")
	require.Contains(t, c.faulted(), "4 cells: 2 passed, **1 failed**, 1 not run; 3 processes")
	require.Contains(t, c.played(), "3 rounds, **1 failed**; 1 000 jobs, up to")
	require.Contains(t, c.played(), "consumer 2, kill 12")
	shown := c.fuzzed([]FuzzTarget{{Package: "wire", Target: "FuzzHint"}, {Package: "flow", Target: "FuzzParse"}})
	require.Contains(t, shown, "| flow | FuzzParse | 1 000 000 | 0 | **yes** |  |\n| wire | FuzzHint | not run |")
	require.Equal(t, none, counts{}.simulated()+counts{}.compared()[:0])
	require.Equal(t, none, counts{}.compared())
}
