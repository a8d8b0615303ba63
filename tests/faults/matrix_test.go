package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

const (
	// ofF1 is how many cells of F1 are played, each at another point; ofOthers how many
	// beside them, each of another fault.
	ofF1, ofOthers = 6, 3
	// lanes is how many cells play at the same time: they mostly wait.
	lanes = 3
)

// onlyStepwise are the points that the normal mode does not have: its steps share
// a commit (C11).
var onlyStepwise = map[fault.Point]bool{fault.K2: true, fault.K11: true, fault.K12: true, fault.K14: true}

// matrix is every cell.
func matrix(round int) (cells []*cell) {
	for _, k := range kinds {
		for _, p := range fault.Points {
			for _, stepwise := range []bool{false, true} {
				if p == fault.K19 && (stepwise || k.name == "F16 least") {
					continue // nothing is early in steps, and a topic with one slot has none to spare
				}
				if stepwise || !onlyStepwise[p] {
					cells = append(cells, &cell{point: p, kind: k, stepwise: stepwise, round: round})
				}
			}
		}
	}
	return cells
}

// TestFaultCells plays F1 at a third of the points (6.2), in one of the modes, and a sample
// of the other cells, others in each run; in a soak F1 at every point and in both modes,
// and every other fault at some point.
//
// QUIPU_FAULTS=all plays every cell, another value those whose names have it in
// them, such as "K7/F1 kill" or F10; a space may be written _. QUIPU_FAULTS_SEED
// repeats a sample, and the choices that every cell makes: for which passing of its
// point a process stands still, in what modes the others work.
func TestFaultCells(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64() >> 1
	if s := os.Getenv("QUIPU_FAULTS_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "QUIPU_FAULTS_SEED is a number that an earlier run printed")
	}
	want := os.Getenv("QUIPU_FAULTS")
	t.Logf("QUIPU_FAULTS_SEED=%d", seed)
	cells := matrix(int(seed % 1000)) //nolint:gosec // small
	switch want {
	case "all":
	case "":
		cells = choose(cells, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // choices, no secret
	default:
		cells = slices.DeleteFunc(cells, func(c *cell) bool {
			return !strings.Contains(c.String(), strings.ReplaceAll(want, "_", " "))
		})
		require.NotEmpty(t, cells, "no cell has %q in its name, which is K0…K19/fault/mode; faults are %s", want, kindNames())
	}
	begun := time.Now()
	t.Cleanup(func() { report(t, cells, time.Since(begun)) }) // when every cell is over
	playAll(t, cells)
}

func kindNames() string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return strings.Join(names, ", ")
}

// choose is F1 at some points, in a soak at all, F6 and F7 at one, and a few others that need no
// more than every machine has, each of another fault.
func choose(cells []*cell, dice *rand.Rand) (out []*cell) {
	cells = slices.Clone(cells)
	dice.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	points, faults, lost := map[fault.Point]bool{}, map[*kind]bool{}, map[string]bool{}
	for _, c := range cells {
		switch {
		case c.kind.small || c.kind.other:
		case c.kind.loses: // F6 and F7, each once
			if fault := c.kind.name[:2]; !lost[fault] {
				lost[fault] = true
				out = append(out, c)
			}
		case c.kind == kinds[0] && (soak.On() || !points[c.point] && len(points) < ofF1):
			points[c.point] = true
			out = append(out, c)
		case c.kind != kinds[0] && !faults[c.kind] && len(faults) < soak.Times(ofOthers, len(kinds)):
			faults[c.kind] = true
			out = append(out, c)
		}
	}
	return out
}

// playAll plays the cells in a few lanes, those of a small disk in one of their
// own.
func playAll(t *testing.T, cells []*cell) {
	var group sync.WaitGroup
	defer group.Wait()
	other := ""
	if len(others(cells, func(k *kind) bool { return k.other })) > 0 {
		var err error
		if other, err = buildOther(t); err != nil {
			leave(cells, func(k *kind) bool { return k.other }, err)
		}
	}
	small := others(cells, func(k *kind) bool { return k.small })
	if len(small) > 0 {
		if l, err := newSmallLane(t); err != nil {
			leave(cells, func(k *kind) bool { return k.small }, err)
		} else {
			group.Go(func() { l.play(t, queue(small)) })
		}
	}
	rest := queue(others(cells, func(k *kind) bool { return !k.small }))
	for range min(lanes, len(rest)) {
		l := newLane(t)
		l.other = other
		group.Go(func() { l.play(t, rest) })
	}
}

// others are the cells of some kinds.
func others(cells []*cell, of func(*kind) bool) []*cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return !of(c.kind) })
}

// leave says why the cells of some kinds are not played.
func leave(cells []*cell, of func(*kind) bool, why error) {
	for _, c := range others(cells, of) {
		c.left = why.Error()
	}
}

func queue(cells []*cell) chan *cell {
	q := make(chan *cell, len(cells))
	for _, c := range cells {
		q <- c
	}
	close(q)
	return q
}

func (l *lane) play(t *testing.T, cells chan *cell) {
	for c := range cells {
		if c.left == "" {
			ok := t.Run(c.String(), func(t *testing.T) { c.run(t, l) })
			c.done = c.done && ok // what the watcher saw, and the cleanup, count too
		}
	}
}

// Results of a cell, each as its mark in the table.
const (
	passed = "."
	failed = "F"
	notRun = "-" // its left says why
)

// result is how the cell ended.
func (c *cell) result() string {
	switch {
	case c.left != "":
		return notRun
	case c.done:
		return passed
	}
	return failed
}

// report prints the table, faults by points, for each the modes that passed; then why
// some were not played, and at the end, in one line, what the run counted.
func report(t *testing.T, cells []*cell, took time.Duration) {
	marks, results, kills, why := map[string]string{}, map[string]int{}, 0, map[string]bool{}
	for _, c := range cells {
		result := c.result()
		results[result]++
		kills += c.kills
		marks[c.kind.name+string(c.point)] += result
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	for _, p := range fault.Points {
		fmt.Fprintf(w, "\t%s", p)
	}
	fmt.Fprintln(w)
	for _, k := range kinds {
		line := ""
		for _, p := range fault.Points {
			line += "\t" + marks[k.name+string(p)]
		}
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(w, "%s%s\n", k.name, line)
		}
	}
	_ = w.Flush() // into memory
	t.Logf("a mark for each mode (normal, stepwise; one where only stepwise has the point): %s passed, %s failed, %s not run\n%s", passed, failed, notRun, &b)
	for _, c := range cells {
		if c.left != "" && !why[c.kind.name] {
			why[c.kind.name] = true
			t.Logf("not run: %s: %s", c.kind.name, c.left)
		}
	}
	t.Logf("%d cells in %v: %d passed, %d failed, %d not run; %d kills",
		len(cells), took.Round(time.Second), results[passed], results[failed], results[notRun], kills)
}
