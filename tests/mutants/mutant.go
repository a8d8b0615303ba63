package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.mutant
var files embed.FS

// mutant is one guard of the protocol, and how it is taken away.
type mutant struct {
	name  string
	guard string // what it holds
	shows []show // each of them has to notice
	edits []edit
}

// show is what has to notice that a guard is gone.
type show struct {
	pkg   string // the directory of the tests
	tests string // which of them, as of go test -run
}

// test is the test without its cases.
func (s show) test() string {
	test, _, _ := strings.Cut(s.tests, "/")
	return strings.Trim(test, "^$")
}

// edit puts other text in the place of one that a file has once.
type edit struct{ file, text, instead string }

// mutants are all of them, in the order of their names.
func mutants() (all []*mutant, err error) {
	names, err := fs.Glob(files, "*.mutant")
	for _, name := range names {
		source, e := files.ReadFile(name)
		m, bad := parse(strings.TrimSuffix(name, ".mutant"), string(source))
		all, err = append(all, m), errors.Join(err, e, bad)
	}
	return all, err
}

var (
	heading = regexp.MustCompile(`^(\S.*\.)\n((?:noticed by \S+ \S+\n)+)\n`)
	noticed = regexp.MustCompile(`noticed by (\S+) (\S+)\n`)
)

func parse(name, source string) (*mutant, error) {
	head := heading.FindStringSubmatch(source)
	if head == nil {
		return nil, fmt.Errorf("mutant %s: wanted are a sentence, lines “noticed by PACKAGE TESTS” and a blank line", name)
	}
	m := &mutant{name: name, guard: head[1]}
	for _, s := range noticed.FindAllStringSubmatch(head[2], -1) {
		m.shows = append(m.shows, show{s[1], s[2]})
	}
	file, text, instead := "", []string(nil), []string(nil)
	end := func() {
		if len(text) > 0 {
			m.edits = append(m.edits, edit{file, strings.Join(text, "\n"), strings.Join(instead, "\n")})
		}
		text, instead = nil, nil
	}
	for line := range strings.SplitSeq(source[len(head[0]):], "\n") {
		switch {
		case strings.HasPrefix(line, "-") && file != "":
			if len(instead) > 0 {
				end()
			}
			text = append(text, line[1:])
		case strings.HasPrefix(line, "+") && len(text) > 0:
			instead = append(instead, line[1:])
		case line == "" || fs.ValidPath(line):
			if end(); line != "" {
				file = line
			}
		default:
			return nil, fmt.Errorf("mutant %s: %q is neither a file nor a text below it", name, line)
		}
	}
	if end(); len(m.edits) == 0 {
		return nil, fmt.Errorf("mutant %s changes nothing", name)
	}
	return m, nil
}

// apply gives the files of the product that the mutant changes, as it has them.
func (m *mutant) apply(product fs.FS) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range m.edits {
		source, again := changed[e.file]
		if !again {
			raw, err := fs.ReadFile(product, e.file)
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.name, err)
			}
			source = string(raw)
		}
		if n := strings.Count(source, e.text); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s has %d times, and not once:\n%s", m.name, e.file, n, e.text)
		}
		changed[e.file] = strings.Replace(source, e.text, e.instead, 1)
	}
	return changed, nil
}
