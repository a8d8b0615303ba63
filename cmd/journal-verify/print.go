package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/replay"
)

// printer prints the outcomes one by one, and then the end of the output.
type printer interface {
	print(o outcome) error
	finish() error
	space(name string, r *replay.SpaceReport) error // the chain of the space itself, at the very end
}

// lines prints one JSON object for each job.
type lines struct{ enc *json.Encoder }

func newLines(out io.Writer) *lines {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return &lines{enc}
}

func (l *lines) print(o outcome) error { return l.enc.Encode(view(o)) }
func (l *lines) finish() error         { return nil }

// table prints a line for each job with its faults below, and at the end what was proved and what
// was not.
type table struct {
	out     io.Writer
	quiet   bool // only what is not proved, and the sum
	begun   bool
	jobs    int
	bad     int
	failed  int
	expired int
	entries int64
	open    int
	chains  int
	effects int64
	waiting int // functions that wait
	wakes   int
	tally   map[replay.Check]*tally
}

// tally counts the outcomes of one check.
type tally struct {
	of    map[replay.Status]int
	notes []string
}

// maxNotes bounds the distinct notes that the summary shows for one check.
const maxNotes = 3

func newTable(out io.Writer, quiet bool) *table {
	return &table{out: out, quiet: quiet, tally: make(map[replay.Check]*tally)}
}

const row = "%-36s  %-24s  %-11s  %8s  %-10s  %s\n"

func (t *table) print(o outcome) error {
	var b strings.Builder
	if !t.begun && !t.quiet {
		fmt.Fprintf(&b, row, "JOB", "KEY", "STATE", "ENTRIES", "RESULT", "")
		t.begun = true
	}
	t.jobs++
	if o.err != nil {
		t.failed++
		id := ""
		if !o.job.IsZero() {
			id = o.job.String()
		}
		fmt.Fprintf(&b, row, id, short(o.source, 24), "", "", "unreadable", o.err)
		return t.write(b.String())
	}
	r := o.report
	result, hint := "proved", ""
	if r.OpenCount > 0 {
		hint = fmt.Sprintf("%d open", r.OpenCount)
	}
	switch {
	case r.Violated():
		t.bad++
		result = "VIOLATED"
	case o.tombstone():
		t.expired++
		result, hint = "not proved", expiredText(r)
	}
	fmt.Fprintf(&b, row, r.Header.Job, short(r.Header.Key, 24), stateOf(r), fmt.Sprint(r.Counts.Entries), result, hint)
	for _, c := range r.Checks {
		t.count(c)
		if c.Violation != nil {
			fmt.Fprintf(&b, "    %s\n", c.Violation)
		}
	}
	t.entries += r.Counts.Entries
	t.open += r.OpenCount
	t.chains += r.Counts.Chains
	t.effects += r.Counts.Effects
	t.waiting += r.Counts.Functions
	t.wakes += r.Counts.Wakes
	if t.quiet && o.proved() {
		return nil
	}
	return t.write(b.String())
}

// expiredText says since when the journal of a job is not kept any more, as far as that is known.
func expiredText(r *replay.Report) string {
	if r.KnownExpiredAt == 0 {
		return "only its tombstone is left"
	}
	return "only its tombstone is left, since " + moment(r.KnownExpiredAt) + " or before"
}

// moment spells a time, in UTC as in docs/verify.md.
func moment(at collation.Micros) string {
	return time.UnixMicro(int64(at)).UTC().Format(time.RFC3339)
}

func stateOf(r *replay.Report) string {
	if r.State == "" {
		return "unknown"
	}
	return string(r.State)
}

func (t *table) count(c replay.Result) {
	y := t.tally[c.Check]
	if y == nil {
		y = &tally{of: make(map[replay.Status]int)}
		t.tally[c.Check] = y
	}
	y.of[c.Status]++
	if c.Note == "" || len(y.notes) >= maxNotes {
		return
	}
	for _, n := range y.notes {
		if n == c.Note {
			return
		}
	}
	y.notes = append(y.notes, c.Note)
}

func (t *table) finish() error {
	var b strings.Builder
	if t.jobs == 0 {
		return t.write("no jobs\n")
	}
	if t.quiet || len(t.tally) == 0 { // nothing was checked
		return t.write(t.sum())
	}
	fmt.Fprintf(&b, "\n%-4s  %-30s  %8s  %8s  %10s\n", "", "CHECK", "PROVED", "VIOLATED", "NOT PROVED")
	for _, c := range replay.Checks {
		y := t.tally[c]
		if y == nil {
			continue
		}
		fmt.Fprintf(&b, "%-4s  %-30s  %8d  %8d  %10d", c, c.Title(), y.of[replay.Proved], y.of[replay.Violated], y.of[replay.NotProved])
		if len(y.notes) > 0 {
			fmt.Fprintf(&b, "  %s", strings.Join(y.notes, " | "))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s", t.sum())
	if t.chains > 0 || t.waiting > 0 {
		fmt.Fprintf(&b, "Of the entries %d are of effects, in %d chains; %d requests of functions suspended, %d wakes came to them.\n",
			t.effects, t.chains, t.waiting, t.wakes)
	}
	b.WriteString("Not proved by any input without a seal: that entries, hashes, heads and tables were not all written anew together.\n")
	return t.write(b.String())
}

// sum is the line that sums up what was verified.
func (t *table) sum() string {
	of := fmt.Sprintf("%s, %s", counted(t.entries, "entry", "entries"), counted(int64(t.open), "open obligation", "open obligations"))
	switch {
	case t.jobs > 1:
		text := fmt.Sprintf("%d jobs, %s: %d proved, %d violated, %d unreadable", t.jobs, of, t.jobs-t.bad-t.failed-t.expired, t.bad, t.failed)
		if t.expired > 0 {
			text += fmt.Sprintf(", %d expired", t.expired)
		}
		return text + ".\n"
	case t.failed > 0:
		return "1 job: it could not be read.\n"
	case t.bad > 0:
		return fmt.Sprintf("1 job, %s: it violates the laws above.\n", of)
	case t.expired > 0:
		return "1 job: it has expired, so nothing of it is proved here. An archive may have its journal (worker --archive).\n"
	}
	return fmt.Sprintf("1 job, %s: proved.\n", of)
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (t *table) write(s string) error {
	if _, err := io.WriteString(t.out, s); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// short cuts a text to n characters, for a column.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
