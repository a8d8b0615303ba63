package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	worlds  = "internal/engine/sim"   // its tests are played by seeds
	prepare = "TestStatementsPrepare" // runs along: a mutant of SQL is SQL still
	most    = 160                     // bytes of what broke
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run takes the guards away that are named, or all, and prints what noticed, and then of the
// claims that they are about whether they were shown. “claims” stands for all of these.
func run(names []string) error {
	all, err := mutants()
	if err != nil {
		return err
	}
	page, err := os.ReadFile("GUARANTEES.md")
	if err != nil {
		return err
	}
	stated := claims(string(page))
	limit, err := strconv.ParseUint(cmp.Or(os.Getenv("SEEDS"), "2000"), 10, 64)
	if err != nil {
		return fmt.Errorf("SEEDS: %w", err)
	}
	for _, name := range names {
		if name != ofClaims && !slices.ContainsFunc(all, func(m *mutant) bool { return m.name == name }) {
			return fmt.Errorf("no mutant is called %s", name)
		}
	}
	begun, played, survived := time.Now(), 0, 0
	fmt.Printf("%-18s  %-6s  %s\n", "guard", "seeds", "what broke")
	for _, m := range all {
		for _, s := range m.shows {
			about := about(stated, s)
			if len(names) > 0 && !slices.Contains(names, m.name) &&
				!(slices.Contains(names, ofClaims) && len(about) > 0) {
				continue
			}
			red, bad := m.report(s, limit)
			if bad != nil {
				err = errors.Join(err, bad)
				continue
			}
			for _, c := range about {
				c.note(m.name, red)
			}
			if played++; !red {
				survived++
			}
		}
	}
	fmt.Printf("%d guards taken away, %d not noticed, in %v; at most %d seeds for each\n", played, survived, time.Since(begun).Round(time.Second), limit)
	if survived > 0 {
		err = errors.Join(err, fmt.Errorf("%d survived", survived))
	}
	return errors.Join(err, summary(stated, len(names) == 0 || slices.Contains(names, ofClaims)))
}

// ofClaims names the mutants that a test of GUARANTEES.md has to notice.
const ofClaims = "claims"

// report plays the mutant, and prints what noticed.
func (m *mutant) report(s show, limit uint64) (red bool, err error) {
	seeds, broke, err := m.play(s, limit)
	if err != nil {
		return false, err
	}
	shown := strconv.FormatUint(seeds, 10)
	switch {
	case broke == "":
		fmt.Printf("%-18s  %-6s  SURVIVED %s %s\n", m.name, "-", s.pkg, s.tests)
		return false, nil
	case s.pkg != worlds:
		shown = "test"
	case seeds == 0:
		shown = "crash"
	}
	fmt.Printf("%-18s  %-6s  %s\n", m.name, shown, broke)
	return true, nil
}

// runs is how often at most a test is run until it notices.
const runs = 3

// play builds the tests with the mutant in the product's place, runs them, and says
// after how many seeds what broke: nothing, where the mutant was not noticed.
func (m *mutant) play(s show, limit uint64) (seeds uint64, broke string, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return 0, "", err
	}
	tests := filepath.Join(dir, "tests")
	if out, err := exec.Command("go", "test", "-overlay", overlay, "-ldflags=-s -w", "-c", "-o", tests, "./"+s.pkg).CombinedOutput(); err != nil {
		return 0, "", fmt.Errorf("mutant %s does not build: %w\n%s", m.name, err, out)
	}
	args := []string{"-test.timeout=15m", "-test.run", s.tests + "|" + prepare}
	if s.pkg == worlds {
		args = append(args, "-seeds", strconv.FormatUint(limit, 10), "-until")
	} else { // a test that draws, or that waits for a race, may need more than one run to notice
		args = append(args, "-test.count="+strconv.Itoa(runs), "-test.failfast")
	}
	if draws(s.pkg) {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms") // what a mutant breaks is not tried again, nor made smaller
	}
	cmd := exec.Command(tests, args...)
	cmd.Dir = filepath.FromSlash(s.pkg)
	out, failed := cmd.CombinedOutput()
	if failed == nil {
		return 0, "", nil
	}
	if seeds, broke = broken(string(out)); broke == "" || bytes.Contains(out, []byte("FAIL: "+prepare)) {
		return 0, "", fmt.Errorf("mutant %s: its tests cannot run: %w\n%s", m.name, failed, out)
	}
	return seeds, broke, nil
}

// draws says that a package has tests with drawn inputs, which keep those that failed.
func draws(pkg string) bool {
	names, _ := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*_test.go"))
	return slices.ContainsFunc(names, func(name string) bool {
		source, err := os.ReadFile(name)
		return err == nil && bytes.Contains(source, []byte(`"pgregory.net/rapid"`))
	})
}

// overlay writes the files that the mutant changes, and for go build what they
// stand for.
func (m *mutant) overlay(dir string) (string, error) {
	changed, err := m.apply(os.DirFS("."))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, source := range changed {
		of, err := filepath.Abs(filepath.FromSlash(file))
		if err != nil {
			return "", err
		}
		replace[of] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[of], []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

var (
	killed  = regexp.MustCompile(`killed after (\d+) seeds by seed \d+: (.*)`)
	crashed = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
	red     = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	reason  = regexp.MustCompile(`(?m)^\s*(?:Error|Messages): +\t(.*)`) // of testify
)

// broken is what tests that failed say first: after how many seeds, and what; a
// crash; or the first test that is red, and the last that it says of why.
func broken(out string) (seeds uint64, what string) {
	if m := killed.FindStringSubmatch(out); m != nil {
		seeds, _ = strconv.ParseUint(m[1], 10, 64)
		what = m[2]
	} else if what = crashed.FindString(out); what == "" {
		for _, m := range red.FindAllStringSubmatch(out, -1) {
			if what != "" && !strings.HasPrefix(m[1], what+"/") {
				break
			}
			what = m[1]
		}
		_, why, _ := strings.Cut(out, "FAIL: "+what+" ")
		why, _, _ = strings.Cut(why, "FAIL: ")
		if r := reason.FindAllStringSubmatch(why, -1); what != "" && r != nil {
			what += ": " + r[len(r)-1][1]
		}
	}
	return seeds, strings.ToValidUTF8(what[:min(len(what), most)], "")
}
