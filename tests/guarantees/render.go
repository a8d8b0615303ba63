package guarantees

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed guarantees.md.tmpl
var claims string

// none stands where nothing was recorded: no number that was not measured.
const none = "Not recorded yet.\n"

// counts are all files below counts/; nil for those that are not there.
type counts struct {
	sim          *Sim
	mutants      *Mutants
	faults       *Faults
	chaos        *Chaos
	fuzz         *Fuzz
	differential *Differential
}

// Render gives GUARANTEES.md for the repository at root: the claims, with links to
// the tests that hold them, which have to be there, and the counts of its tree.
func Render(root string) ([]byte, error) {
	x, err := newIndex(root)
	if err != nil {
		return nil, err
	}
	c, err := readCounts(filepath.Join(root, "tests", "guarantees", "counts"))
	if err != nil {
		return nil, err
	}
	t, err := template.New("guarantees.md.tmpl").Funcs(template.FuncMap{
		"tests": x.tests, "cases": x.cases, "file": x.file,
		"sim": c.simulated, "mutants": c.mutated, "faults": c.faulted, "chaos": c.played, "differential": c.compared,
		"fuzz": func() string { return c.fuzzed(x.fuzz) },
	}).Parse(claims)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, nil)
	return out.Bytes(), err
}

func readCounts(dir string) (c counts, err error) {
	return c, errors.Join(
		load(dir, NameSim, &c.sim), load(dir, NameMutants, &c.mutants), load(dir, NameFaults, &c.faults),
		load(dir, NameChaos, &c.chaos), load(dir, NameFuzz, &c.fuzz), load(dir, NameDifferential, &c.differential),
	)
}

func load[T any](dir, name string, into **T) error {
	raw, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	*into = new(T)
	if err := decode(raw, *into); err != nil {
		return fmt.Errorf("%s.json: %w", name, err)
	}
	return nil
}

// ran says when, of what and how long a run was.
func (r Run) ran() string { return fmt.Sprintf("%s, commit %s, %s", r.Date, r.Commit, took(r.Seconds)) }

func took(seconds float64) string {
	switch {
	case seconds >= 7200:
		return fmt.Sprintf("%.1f h", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.0f s", seconds)
}

// grouped writes a number with its thousands apart.
func grouped[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

func (c counts) simulated() string {
	s := c.sim
	if s == nil || s.Seeds == 0 {
		return none
	}
	return fmt.Sprintf("%s worlds from seed %d on, **%s failed**; %.0f worlds/s, %s calls and %s commits in all. %s (%s of processor time).\n",
		grouped(s.Seeds), s.From, grouped(s.Failed), float64(s.Seeds)/max(s.Seconds, 1), grouped(s.Calls), grouped(s.Commits), s.ran(), took(s.CPU))
}

func (c counts) mutated() string {
	m := c.mutants
	if m == nil {
		return none
	}
	var b strings.Builder
	survived := 0
	fmt.Fprintf(&b, "| guard taken away | worlds until it was noticed | what broke |\n|---|---|---|\n")
	for _, g := range m.Guards {
		seeds := grouped(g.Seeds)
		switch {
		case g.Broke == "":
			survived++
			seeds = "**not noticed**"
			if !g.Test {
				seeds += " in " + grouped(m.Limit)
			}
		case g.Test:
			seeds = "a test"
		case g.Seeds == 0:
			seeds = "the process died"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.Guard, seeds, cell(g.Broke))
	}
	fmt.Fprintf(&b, "\n%d guards, %d not noticed. %s.\n", len(m.Guards), survived, m.ran())
	return b.String()
}

// cell keeps text within its cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// faulted is the matrix of faults by points; in each field a mark for each mode.
func (c counts) faulted() string {
	f := c.faults
	if f == nil {
		return none
	}
	var points, faults []string
	fields, results, kills := map[[2]string]string{}, map[string]int{}, 0
	var odd strings.Builder
	for _, x := range f.Cells {
		results[x.Result]++
		kills += x.Kills
		if !slices.Contains(points, x.Point) {
			points = append(points, x.Point)
		}
		if !slices.Contains(faults, x.Fault) {
			faults = append(faults, x.Fault)
		}
		fields[[2]string{x.Fault, x.Point}] += marks[x.Result]
		if x.Result != Passed {
			fmt.Fprintf(&odd, "- %s, %s, %s: %s. %s\n", x.Point, x.Fault, x.Mode, x.Result, cell(x.Note))
		}
	}
	slices.SortFunc(points, natural)
	slices.SortFunc(faults, natural)
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(points, " | "), strings.Repeat("---|", len(points)))
	for _, name := range faults {
		fmt.Fprintf(&b, "| %s |", name)
		for _, point := range points {
			fmt.Fprintf(&b, " %s |", fields[[2]string{name, point}])
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "\nA mark for each mode of the process at its point, normal and stepwise, or for stepwise alone, where only that has the point: ✓ passed, ✗ failed, – not run.\n"+
		"\n%d cells: %d passed, **%d failed**, %d not run; %d processes killed. The last run: %s.\n",
		len(f.Cells), results[Passed], results[Failed], results[NotRun], kills, f.ran())
	if odd.Len() > 0 {
		fmt.Fprintf(&b, "\n%s", &odd)
	}
	return b.String()
}

// marks are the results of cells in the matrix.
var marks = map[string]string{Passed: "✓", Failed: "✗", NotRun: "–"}

func (c counts) played() string {
	s := c.chaos
	if s == nil {
		return none
	}
	var events []string
	for _, what := range slices.Sorted(maps.Keys(s.Events)) {
		events = append(events, fmt.Sprintf("%s %s", what, grouped(s.Events[what])))
	}
	return fmt.Sprintf("%d rounds, **%d failed**; %s jobs, up to %d worker processes at a time; all had ended at the latest %.1f s after the faults. What happened: %s. Seed %d. %s.\n",
		s.Rounds, s.Failed, grouped(s.Jobs), s.Workers, float64(s.LatestMS)/1000, strings.Join(events, ", "), s.Seed, s.ran())
}

// fuzzed has a row for each target that is there, with what it last did.
func (c counts) fuzzed(targets []FuzzTarget) string {
	var b strings.Builder
	slices.SortFunc(targets, func(a, b FuzzTarget) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Target, b.Target))
	})
	sum, run := uint64(0), 0
	fmt.Fprintf(&b, "| package | target | executions | inputs committed | failed | commit |\n|---|---|---|---|---|---|\n")
	for _, t := range targets {
		i := -1
		if c.fuzz != nil {
			i = slices.IndexFunc(c.fuzz.Targets, func(o FuzzTarget) bool { return o.Package == t.Package && o.Target == t.Target })
		}
		if i < 0 {
			fmt.Fprintf(&b, "| %s | %s | not run | | | |\n", t.Package, t.Target)
			continue
		}
		o := c.fuzz.Targets[i]
		sum += o.Executions
		if o.Executions > 0 {
			run++
		}
		failed := "no"
		if o.Failed {
			failed = "**yes**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", o.Package, o.Target, grouped(o.Executions), o.Corpus, failed, o.Commit)
	}
	fmt.Fprintf(&b, "\n%d targets, %d of them run beyond their inputs, %s executions.", len(targets), run, grouped(sum))
	if c.fuzz != nil {
		fmt.Fprintf(&b, " The last part was run on %s.", c.fuzz.Date)
	}
	return b.String() + "\n"
}

func (c counts) compared() string {
	d := c.differential
	if d == nil {
		return none
	}
	outcome := "no difference"
	if d.Failed {
		outcome = "**a difference was found**"
	}
	return fmt.Sprintf("%s sequences of about %d calls, %s. %s.\n", grouped(d.Sequences), d.Steps, outcome, d.ran())
}
