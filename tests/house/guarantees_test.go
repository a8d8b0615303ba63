package house

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	proof       = regexp.MustCompile(`\[((?:Test|Fuzz)[A-Z]\w*|“[^”]*”)\]\(([^)#\s]+)\)`)
	namesOnPage = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*|“[^”]*”`)
	claimed     = regexp.MustCompile(`^[PI][0-9]+$`)
)

// proofs are what is wrong with the tests that a page names: the file of a link has no
// function of that name, or for a quoted name no such case of a suite; or there is no link.
func proofs(page string, source func(name string) string) (broken []string) {
	for _, m := range proof.FindAllStringSubmatch(page, -1) {
		want := "\nfunc " + m[1] + "("
		if name, ok := strings.CutPrefix(m[1], "“"); ok {
			want = `"` + strings.TrimSuffix(name, "”") + `"`
		}
		if !strings.Contains(source(m[2]), want) {
			broken = append(broken, fmt.Sprintf("%s is not in %s", m[1], m[2]))
		}
	}
	for _, name := range namesOnPage.FindAllString(proof.ReplaceAllString(page, ""), -1) {
		broken = append(broken, name+" has no link")
	}
	return broken
}

// unproved are the rows of tables with a column of tests, their last, that name none; what
// is not in this build needs none.
func unproved(page string) (broken []string) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasSuffix(last, "shown by"):
			inside = true
		case inside && !strings.HasPrefix(last, "---") && !proof.MatchString(last) && last != "not in this build":
			broken = append(broken, "no test shows: "+line)
		}
	}
	return broken
}

// misruled are the ids of a page that the rules do not state, and the scenarios (P) and
// invariants (I) of the rules of which it says nothing.
func misruled(page, rules string) (broken []string) {
	stated, said := cited(rules), cited(page)
	for id := range said {
		if !stated[id] {
			broken = append(broken, id+" is no rule")
		}
	}
	for id := range stated {
		if claimed.MatchString(id) && !said[id] {
			broken = append(broken, id+" is missing")
		}
	}
	return broken
}

// Every test that GUARANTEES.md names is there, every claim names one, and it speaks of
// the rules that there are.
func TestGuaranteesAreShown(t *testing.T) {
	t.Parallel()
	page := read(t, "GUARANTEES.md")
	all, err := contents()
	require.NoError(t, err)
	broken := proofs(page, func(name string) string { return string(all[name]) })
	broken = append(broken, unproved(page)...)
	none(t, append(broken, misruled(page, read(t, "docs/rules.md"))...), "what GUARANTEES.md says is there")
}

func TestGuaranteeRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	source := func(name string) string {
		return map[string]string{
			"a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n\n// TestB is\n", "cases.go": "\t\"two answers (P5)\": answers,\n",
		}[name]
	}
	for page, want := range map[string]string{
		"[TestB](a_test.go)":           "TestB is not in a_test.go",
		"[TestA](b_test.go)":           "TestA is not in b_test.go",
		"[FuzzA](a_test.go)":           "FuzzA is not in a_test.go",
		"[“two answers”](cases.go)":    "“two answers” is not in cases.go",
		"TestA holds it":               "TestA has no link",
		"[the test](a_test.go), TestB": "TestB has no link",
		"“two answers (P5)”":           "“two answers (P5)” has no link",
		"C1, P2 and C9":                "C9 is no rule",
		"C1–C3, P2":                    "C3 is no rule",
		"C1 holds":                     "P2 is missing",

		"| so | also shown by |\n|---|---|\n| it holds | yes |\n": "no test shows: | it holds | yes |",
	} {
		broken := append(proofs(page, source), unproved(page)...)
		if len(broken) == 0 {
			broken = misruled(page, "C1, C2, P2")
		}
		require.Equal(t, []string{want}, broken, page)
	}
	good := "| P2 | shown by |\n|---|---|\n| C1–C2 | [TestA](a_test.go), [“two answers (P5)”](cases.go) |\n| C1 | not in this build |\n\n| no | proof |\n|---|---|\n| it holds | – |\n"
	require.Empty(t, slices.Concat(proofs(good, source), unproved(good), misruled(good, "C1, C2, P2, P5")))
}
