package readings

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

//go:embed readings.txt
var cases string

//go:embed flow.yaml
var definition []byte

// Refused is the answer of a step that no ledger takes.
const Refused = "refused"

// Flow is the flow whose activities the cases of addresses name.
func Flow(t *testing.T) *flow.Flow {
	t.Helper()
	f, err := flow.Parse("flow.yaml", definition)
	require.NoError(t, err)
	return f
}

// Entry is the entry with that body.
func Entry(t *testing.T, body string) *journal.Entry {
	t.Helper()
	e, err := journal.Decode(journal.Record{Body: []byte(body)})
	require.NoError(t, err, body)
	return e
}

// Ledger is the last argument, a ledger.
func Ledger(t *testing.T, args []string) journal.Ledger {
	t.Helper()
	l, err := journal.ParseLedger(args[len(args)-1])
	require.NoError(t, err)
	return l
}

// Number is the last argument, a number.
func Number(t *testing.T, args []string) int {
	t.Helper()
	n, err := strconv.Atoi(args[len(args)-1])
	require.NoError(t, err)
	return n
}

// Activities are the activity and the reader that a case of addresses names; the flow's output is no
// reader.
func Activities(t *testing.T, f *flow.Flow, args []string) (act, reader *flow.Activity) {
	t.Helper()
	act, _ = f.Activity(args[0])
	reader, _ = f.Activity(args[1])
	require.NotNil(t, act, args)
	require.Equal(t, args[1] == "output", reader == nil, args)
	return act, reader
}

// Check compares the readers with all cases. A case is a line: a reader's name, its arguments,
// “ -> ” and what it answers.
func Check(t *testing.T, readers map[string]func(args []string) string) {
	t.Helper()
	used := map[string]bool{}
	for line := range strings.Lines(cases) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		asked, want, ok := strings.Cut(line, " -> ")
		words := strings.Fields(asked)
		require.True(t, ok && len(words) > 0 && readers[words[0]] != nil, "no reader reads %q", line)
		used[words[0]] = true
		require.Equal(t, want, readers[words[0]](words[1:]), "%s", asked)
	}
	require.Len(t, used, len(readers), "every reader has cases")
}

// Result writes a result, and its error as read back from it: code, output, error, what woke it,
// whether an earlier generation recorded it; class, message and data. “-” is nothing.
func Result(r *flow.Result, f *journal.Failure) string {
	if f == nil {
		f = &journal.Failure{}
	}
	return fmt.Sprintf("%d %s %s %s %s | %s %s %s", r.Code, or(r.Output), or(r.Error), or(r.By), word(r.Taken, "taken"),
		or(f.Class), or(f.Message), or(f.Data)) + strings.TrimSuffix(" "+word(!r.Ran || r.Skipped, "did not run"), " -")
}

func or[T string | []byte](text T) string { return cmp.Or(string(text), "-") }

func word(is bool, yes string) string {
	if is {
		return yes
	}
	return "-"
}
