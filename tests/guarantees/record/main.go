package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/quipu-journal/quipu/tests/guarantees"
)

func main() {
	if err := record(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	commit := flags.String("commit", "", "what record begin printed")
	seconds := flags.Float64("seconds", 0, "how long the run took")
	if err := flags.Parse(args); err != nil {
		return err
	}
	run := guarantees.Begin()()
	switch name := flags.Arg(0); name {
	case "begin":
		_, err := fmt.Fprintln(out, run.Commit)
		return err
	case guarantees.NameFuzz:
		run.Commit, run.Seconds, run.CPU = *commit, *seconds, 0
		lines, err := rows(in)
		if err != nil {
			return err
		}
		return fuzz(run, lines)
	default:
		return fmt.Errorf("%q: begin or fuzz", name)
	}
}

// rows are the lines of a table below its heading.
func rows(in io.Reader) (lines []string, err error) {
	s := bufio.NewScanner(in)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if s.Err() == nil && len(lines) < 2 {
		return nil, fmt.Errorf("a table of %d lines: wanted are a heading and rows", len(lines))
	}
	return lines[min(1, len(lines)):], s.Err()
}

func fuzz(run guarantees.Run, lines []string) error {
	f := guarantees.Fuzz{Run: run}
	for _, line := range lines {
		var t guarantees.FuzzTarget
		var result string
		if _, err := fmt.Sscan(line, &t.Package, &t.Target, &t.Executions, &t.New, &t.Corpus, &result); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		t.Failed = result != guarantees.Passed
		f.Targets = append(f.Targets, t)
	}
	return guarantees.Record(guarantees.NameFuzz, f)
}
