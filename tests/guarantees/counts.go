package guarantees

import (
	"cmp"
	"slices"
)

// Names of the files below counts/, without their ending.
const (
	NameSim          = "sim"
	NameMutants      = "mutants"
	NameFaults       = "faults"
	NameChaos        = "chaos"
	NameFuzz         = "fuzz"
	NameDifferential = "differential"
)

// Run is what every file of counts says of the run that made it. [Begin] makes
// one.
type Run struct {
	Date    string  `json:"date"`                  // UTC, such as 2006-01-02
	Commit  string  `json:"commit"`                // what was checked out; a + behind it where files were changed
	Seconds float64 `json:"seconds"`               // from begin to end
	CPU     float64 `json:"cpu_seconds,omitempty"` // of the process itself
}

// Sim is a run of the simulator.
type Sim struct {
	Run
	From    uint64 `json:"from"` // the first seed; they follow one another
	Seeds   uint64 `json:"seeds"`
	Failed  uint64 `json:"failed"`
	Calls   uint64 `json:"calls"`   // of all seeds together
	Commits uint64 `json:"commits"` // of all seeds together
}

// Mutants is a run of all guard mutants.
type Mutants struct {
	Run
	Limit  uint64   `json:"limit"` // seeds that were played before a mutant was said to have survived
	Guards []Mutant `json:"guards"`
}

// Mutant is one guard that was taken away.
type Mutant struct {
	Guard string `json:"guard"`
	Seeds uint64 `json:"seeds"`          // how many it took; 0 where it survived, the process itself died, or for a Test
	Broke string `json:"broke"`          // what broke first; empty where it survived
	Test  bool   `json:"test,omitempty"` // a test was to notice, Broke names it, and no world was played
}

// Results of a cell.
const (
	Passed = "passed"
	Failed = "failed"
	NotRun = "not run" // Note says why
)

// Faults is a run of the matrix of crash points and faults (6.2, 6.3), or of a
// part of it: recorded, it replaces its own cells and keeps the others.
type Faults struct {
	Run
	Cells []Cell `json:"cells"`
}

// Cell is one fault at one point in one mode of the engine. The three name it.
type Cell struct {
	Point  string `json:"point"` // K0…K17, or what else it strikes at
	Fault  string `json:"fault"` // F1…F18
	Mode   string `json:"mode"`  // how the engine commits: normal, stepwise, …
	Result string `json:"result"`
	MS     int64  `json:"ms"`
	Kills  int    `json:"kills"` // processes killed or stopped in it
	Note   string `json:"note,omitempty"`
	Date   string `json:"date,omitempty"`   // of the run; Record sets it
	Commit string `json:"commit,omitempty"` // of the run; Record sets it
}

// Chaos is a run of all faults at once.
type Chaos struct {
	Run
	Seed     uint64         `json:"seed"`
	Rounds   int            `json:"rounds"`
	Failed   int            `json:"failed"` // rounds
	Jobs     int            `json:"jobs"`
	Events   map[string]int `json:"events"`            // faults and answers by name, of all rounds: kill, stop, restart, …
	LatestMS int64          `json:"latest_ms"`         // the longest that jobs took to end once the faults were over
	Workers  int            `json:"workers,omitempty"` // processes at a time, at most
}

// Fuzz is a run of the fuzz targets, or of some: recorded, it replaces those and
// keeps the others.
type Fuzz struct {
	Run
	Targets []FuzzTarget `json:"targets"`
}

// FuzzTarget is the run of one target.
type FuzzTarget struct {
	Package    string `json:"package"` // directory
	Target     string `json:"target"`
	Executions uint64 `json:"executions"`
	New        uint64 `json:"new"`    // inputs that reached something no earlier one had
	Corpus     uint64 `json:"corpus"` // inputs committed
	Failed     bool   `json:"failed,omitempty"`
	Date       string `json:"date,omitempty"`   // of the run; Record sets it
	Commit     string `json:"commit,omitempty"` // of the run; Record sets it
}

// Differential is a run of the two stores side by side.
type Differential struct {
	Run
	Sequences int  `json:"sequences"` // of calls
	Steps     int  `json:"steps"`     // calls of a sequence, on average
	Failed    bool `json:"failed"`
}

// merger is a file of counts that keeps what another run has written.
type merger interface{ merge(old []byte) (any, error) }

// merge puts the cells of the run among those that were run before.
func (f Faults) merge(raw []byte) (any, error) {
	var old Faults
	err := decode(raw, &old)
	f.Cells = joined(f.Cells, old.Cells, func(c Cell) [3]string { return [3]string{c.Point, c.Fault, c.Mode} }, func(c *Cell) {
		c.Date, c.Commit = cmp.Or(c.Date, f.Date), cmp.Or(c.Commit, f.Commit)
	})
	return f, err
}

// merge puts the targets of the run among those that were run before.
func (f Fuzz) merge(raw []byte) (any, error) {
	var old Fuzz
	err := decode(raw, &old)
	f.Targets = joined(f.Targets, old.Targets, func(t FuzzTarget) [3]string { return [3]string{t.Package, t.Target} }, func(t *FuzzTarget) {
		t.Date, t.Commit = cmp.Or(t.Date, f.Date), cmp.Or(t.Commit, f.Commit)
	})
	return f, err
}

// joined are the stamped results of a run and those of runs before that it has no
// other for, in the order of their names.
func joined[T any](run, before []T, name func(T) [3]string, stamp func(*T)) []T {
	out := slices.Clone(run)
	for i := range out {
		stamp(&out[i])
	}
	for _, b := range before {
		if !slices.ContainsFunc(run, func(r T) bool { return name(r) == name(b) }) {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b T) int { return slices.CompareFunc(parts(name(a)), parts(name(b)), natural) })
	return out
}

func parts(name [3]string) []string { return name[:] }
