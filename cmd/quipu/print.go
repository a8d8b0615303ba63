package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
)

// maxCell is the length at which the text of a table cell is cut on a terminal, in characters. What is
// printed elsewhere, into a file or another command, is whole.
const maxCell = 100

// object prints v as one line of JSON.
func (a *app) object(v any) error {
	enc := json.NewEncoder(a.streams.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) json() bool { return a.output == "json" }

// say prints v in JSON, or a sentence.
func (a *app) say(v any, format string, args ...any) error {
	if a.json() {
		return a.object(v)
	}
	_, err := fmt.Fprintf(a.streams.Out, format, args...)
	return err
}

// item prints v in JSON, or cells as a row of the table.
func (a *app) item(t *table, v any, cells ...any) error {
	if a.json() {
		return a.object(v)
	}
	t.row(cells...)
	return nil
}

// none says on standard error of a table with n rows that it has none: of what, such as jobs.
func (a *app) none(n int, what string) {
	if n == 0 && !a.json() {
		fmt.Fprintln(a.streams.Err, "no "+what)
	}
}

// table prints rows in columns. Without rows it prints no head.
type table struct {
	w    *tabwriter.Writer
	head []string
	rows int
	most int // most rows that are printed; 0: all
	hide int // the column that is left out, from 1; 0: none
	cut  bool
}

// address is the head of the column that only --digits shows.
const address = "ADDRESS"

// addressed leaves the addresses out unless digits is set.
func (t *table) addressed(digits bool) *table {
	if at := slices.Index(t.head, address); at >= 0 && !digits {
		t.hide = at + 1
		t.head = slices.Delete(t.head, at, at+1)
	}
	return t
}

func newTable(w io.Writer, head ...string) *table {
	_, drawn := w.(*canvas)
	return &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), head: head, cut: drawn || cli.Terminal(w)}
}

// bounded cuts the table at maxRows and counts the rest.
func (t *table) bounded() *table {
	t.most = maxRows
	return t
}

// row prints one row. Its cells are made safe for a terminal, and on one they are cut to maxCell.
func (t *table) row(cells ...any) {
	if t.rows == 0 && len(t.head) > 0 {
		fmt.Fprintln(t.w, strings.Join(t.head, "\t"))
	}
	if t.rows++; t.most > 0 && t.rows > t.most {
		return
	}
	if t.hide > 0 {
		cells = slices.Delete(cells, t.hide-1, t.hide)
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		if texts[i] = plain(fmt.Sprint(c)); t.cut {
			texts[i] = cell(texts[i])
		}
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

func (t *table) flush() error {
	if t.most > 0 && t.rows > t.most {
		fmt.Fprintf(t.w, "… and %d more\n", t.rows-t.most)
	}
	return t.w.Flush()
}

// plain makes a text safe for a terminal: it stays on one line and has no control characters, nor
// characters that change the direction of text.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// inert makes JSON safe for a terminal. It escapes characters that a terminal obeys, so the JSON
// value stays the same.
func inert(text []byte) string {
	if !bytes.ContainsFunc(text, acts) {
		return string(text)
	}
	var b strings.Builder
	for _, r := range string(text) {
		if acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// acts says that a terminal obeys the character: a control character, which in JSON only occurs
// in strings apart from white space, or one that changes the direction of text.
func acts(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' || unicode.Is(unicode.Bidi_Control, r) ||
		r == '\u2028' || r == '\u2029'
}

// cell returns plain text, cut to maxCell.
func cell(text string) string {
	text = plain(text)
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell-1]) + "…"
	}
	return text
}

// pretty indents JSON for a person, from the second line on.
func pretty(text []byte, indent string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, indent, "  "); err != nil {
		return cell(string(text))
	}
	return inert(b.Bytes())
}

// The places at which the digits of the ledgers of an activity and of a message are cut (1.2, 1.3).
var (
	ofActivity = []int{0, 1, 3, 4, 5, 7, 15}
	ofMessage  = []int{0, 3, 4, 5, 6, 7, 15}
)

// grouped formats a ledger with spaces between its groups.
func grouped(l journal.Ledger, at []int) string {
	digits := l.String()
	groups := make([]string, len(at)-1)
	for i := range groups {
		groups[i] = digits[at[i]:at[i+1]]
	}
	return strings.Join(groups, " ")
}

func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
