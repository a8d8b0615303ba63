package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// marked has the claims that no mutant is about, each with the reason: the first words of the
// claim, “: ” and why.
//
//go:embed claims.txt
var marked string

// claim is a row of GUARANTEES.md that says what holds, with the tests that it names.
type claim struct {
	says  string // its first cells
	tests []named
	// taken and missed are the mutants that a test of it has noticed, and has not.
	taken, missed []string
}

// named is a test of a claim, or for a quoted name a case of a suite.
type named struct{ name, pkg string }

var link = regexp.MustCompile(`\[((?:Test|Fuzz)[A-Z]\w*|“[^”]*”)\]\(([^)#\s]+)\)`)

// suite is the test that has the cases that a claim names.
const suite = "TestConformance"

// claims reads the rows of the tables whose last column says what shows them.
func claims(page string) (all []*claim) {
	inside := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasSuffix(last, "shown by"):
			inside = true
		case inside && !strings.HasPrefix(last, "---"):
			c := &claim{}
			for _, cell := range cells[:len(cells)-1] {
				c.says += strings.TrimSpace(cell) + " "
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				c.tests = append(c.tests, named{m[1], path.Dir(m[2])})
			}
			all = append(all, c)
		}
	}
	return all
}

// about are the claims that name what has to notice. A suite of many cases, or a test that plays
// whole worlds, shows nothing by itself: of these the case has to be named.
func about(all []*claim, s show) (out []*claim) {
	for _, c := range all {
		if slices.ContainsFunc(c.tests, func(n named) bool { return n.is(s) }) {
			out = append(out, c)
		}
	}
	return out
}

func (n named) is(s show) bool {
	quoted, one := strings.CutPrefix(n.name, "“")
	if !one {
		return n.name == s.test() && n.pkg == s.pkg && s.pkg != worlds && s.test() != suite
	}
	parts := strings.Split(s.tests, "/")
	which, err := regexp.Compile(parts[len(parts)-1])
	return err == nil && len(parts) == 3 && n.pkg == s.pkg && s.test() == suite &&
		which.MatchString(strings.ReplaceAll(strings.TrimSuffix(quoted, "”"), " ", "_"))
}

func (c *claim) note(mutant string, red bool) {
	if red {
		c.taken = append(c.taken, mutant)
	} else {
		c.missed = append(c.missed, mutant)
	}
}

// first is what the list and the marks call the claim.
func (c *claim) first() string {
	const most = 72
	if r := []rune(c.says); len(r) > most {
		return string(r[:most]) + "…"
	}
	return c.says
}

// marks are the first words of the claims that are marked, with the reasons.
func marks() (all [][2]string, err error) {
	for line := range strings.Lines(marked) {
		words, why, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || words == "" || why == "" {
			err = errors.Join(err, fmt.Errorf("claims.txt: %q is no “first words: why”", line))
		}
		all = append(all, [2]string{words, why})
	}
	return all, err
}

// summary prints of each claim what its tests have noticed, or with all of them also why there is
// nothing that could be taken away.
func summary(all []*claim, every bool) error {
	marks, err := marks()
	shown, missed := 0, 0
	for _, c := range all {
		i := slices.IndexFunc(marks, func(m [2]string) bool { return strings.HasPrefix(c.says, m[0]) })
		switch {
		case len(c.missed) > 0:
			missed++
			fmt.Printf("NOT SHOWN  %s\n           without %s it goes unnoticed\n", c.first(), strings.Join(c.missed, ", "))
		case len(c.taken) > 0:
			shown++
			fmt.Printf("shown      %s\n           by %s\n", c.first(), strings.Join(c.taken, ", "))
		case every && i >= 0:
			fmt.Printf("marked     %s\n           %s\n", c.first(), marks[i][1])
		}
	}
	if every {
		fmt.Printf("%d of %d claims of GUARANTEES.md were shown by what was taken away, %d were not, %d are marked\n", shown, len(all), missed, len(marks))
	}
	if missed > 0 {
		err = errors.Join(err, fmt.Errorf("%d claims are not shown", missed))
	}
	return err
}
