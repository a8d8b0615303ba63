package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// TestDigits: the groups of 1.2 and of 1.3.
func TestDigits(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 23 4 5 67 89012345", grouped(123456789012345, ofActivity))
	require.Equal(t, "000 1 1 1 0 00000007", grouped(111000000007, ofMessage))
}

// TestShowListsInstances: in the order of the graph, each in the order of its passes.
func TestShowListsInstances(t *testing.T) {
	t.Parallel()
	of := func(activity, address string, ledger journal.Ledger, code int, says string) view.Activity {
		return view.Activity{Activity: activity, Address: address, Ledger: ledger, Code: code, Says: says}
	}
	element, done := 4, "Leg1 complete, 0 responses"
	j := &view.Job{
		Graph: []view.Standing{{Activity: "start"}, {Activity: "left"}, {Activity: "right"}, {Activity: "deep"}},
		Activities: []view.Activity{
			of("deep", ",0,10,0", 1100000000000, 0, done), of("deep", ",0,2,0", 1100000000000, 0, done),
			of("deep", ",0,0,0", 1100000000000, 0, done), of("right", ",0,0", 1100000000000, 0, done),
			of("left", ",0,0", 201100000000001, 200, "finalized, 1 response"),
			of("start", ",0", journal.Ledger(collation.TriggerBorn), 200, "trigger"),
			{Activity: "left", Address: ",0,0", Element: &element},
		},
		Waits: []view.Wait{{Activity: "right", Address: ",0,0", Topic: "go", Key: "k 1", SinceEntry: 3}},
		Effects: []view.Effect{
			{Name: "charge[1]", Class: "guarded", State: "completed", Key: journal.Digest{1}, Activity: "left", Address: ",0,0", Element: &element},
			{Name: "mail", Class: "idempotent", State: "started", Activity: "left", Address: ",0,0"},
			{Name: "mail", Class: "idempotent", State: "not_done", Activity: "right", Address: ",0,0"},
			{Name: "book", Class: "guarded", State: "completed", Error: &view.Failure{}, Activity: "right", Address: ",0,0"},
			{Name: "refund", Class: "undo", State: "started", Activity: "right", Address: ",0,0"},
		},
	}
	var b bytes.Buffer
	s := &shower{app: &app{streams: cli.Streams{Out: &b}}, digits: true}
	require.NoError(t, s.tables(j))
	require.Equal(t, strings.TrimPrefix(`
ACTIVITY  ADDRESS  LEDGER                CODE  
start     ,0       1 01 1 0 00 00000001  200   trigger
left      ,0,0     2 01 1 0 00 00000001  200   finalized, 1 response
right     ,0,0     0 01 1 0 00 00000000        Leg1 complete, 0 responses
deep      ,0,0,0   0 01 1 0 00 00000000        Leg1 complete, 0 responses
deep      ,0,2,0   0 01 1 0 00 00000000        Leg1 complete, 0 responses
deep      ,0,10,0  0 01 1 0 00 00000000        Leg1 complete, 0 responses

EFFECT     CLASS       ACTIVITY  ADDRESS  STATE             KEY
charge[1]  guarded     left[4]   ,0,0     completed         01`+zeros(62)+`
mail       idempotent  left      ,0,0     started           `+zeros(64)+`
mail       idempotent  right     ,0,0     not done          `+zeros(64)+`
book       guarded     right     ,0,0     completed: error  `+zeros(64)+`
refund     undo        right     ,0,0     registered        `+zeros(64)+`

WAITS FOR  KEY  ACTIVITY  ADDRESS  SIGNALS  SINCE
go         k 1  right     ,0,0     0        entry 3
`, "\n"), b.String())
	b.Reset()
	j.Graph, j.Effects = nil, nil
	require.NoError(t, s.tables(j))
	require.Equal(t, 10, strings.Count(b.String(), "\n"), "without the definition: as they come")
	b.Reset()
	s.digits = false
	require.NoError(t, s.tables(j))
	require.Equal(t, "WAITS FOR  KEY  ACTIVITY  SIGNALS  SINCE\ngo         k 1  right     0        entry 3\n", b.String())
}

func zeros(n int) string { return strings.Repeat("0", n) }

// TestTablesAreCut: rows beyond the limit are counted.
func TestTablesAreCut(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	x := newTable(&b, "N").bounded()
	for i := range maxRows + 3 {
		x.row(i)
	}
	require.NoError(t, sections(&b, newTable(&b, "EMPTY"), x))
	require.Equal(t, maxRows+2, strings.Count(b.String(), "\n"))
	require.Contains(t, b.String(), "\n199\n… and 3 more\n")
}

func TestOpenRowsSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	at := time.Unix(5, 0)
	for want, m := range map[string]view.Message{
		"held: stuck":                   {Held: view.HeldStuck, Due: at},
		"held until o":                  {Held: view.HeldParallel, Due: at},
		"with w1":                       {Holder: "w1"},
		"waits":                         {},
		"suspended: waits for 2 things": {Pauses: make([]view.Awaited, 2)},
		"goes out at":                   {Due: at},
		"looked at ag":                  {Due: at, Sends: 1, Sent: at},
	} {
		require.Contains(t, due(&m), want)
	}
	var b bytes.Buffer
	require.NoError(t, sections(&b, openRows(&b, &view.Job{}, false)))
	require.Empty(t, b.String())
	element := 3
	require.NoError(t, sections(&b, openRows(&b, &view.Job{
		Messages: []view.Message{{Kind: "request", Activity: "items", Element: &element}},
	}, false)))
	require.Contains(t, b.String(), "items[3]")
}

// TestOpenLettersAreWhole: the advice about an open dead letter is not cut.
func TestOpenLettersAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxCell) + "; look outside"
	var b bytes.Buffer
	openLetters(&b, []view.DeadLetter{{ID: 1, State: "retried", Message: "gone"}, {ID: 2, State: "open", Message: long}})
	require.Equal(t, "\nDead letter 2: "+long+"\n", b.String())
}

// Sentences are whole where no terminal is: in a file, or for another command.
func TestCellsAreWholeElsewhere(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxCell)
	var file bytes.Buffer
	var drawn canvas
	for _, w := range []io.Writer{&file, &drawn} {
		x := newTable(w)
		x.row(long + "\t\x1b[1m")
		require.NoError(t, x.flush())
	}
	require.Equal(t, long+"  [1m\n", file.String())
	require.Equal(t, long[:maxCell-1]+"…\n", drawn.String())
}

// TestCellsAreHarmless: users' text cannot move a terminal's cursor.
func TestCellsAreHarmless(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b [31m", cell("a\tb\x1b[31m"))
	require.Len(t, []rune(cell(strings.Repeat("ü", 300))), maxCell)
	require.Equal(t, "not json", pretty([]byte("not json"), ""))
	require.Equal(t, "a\ufffdb c", plain("a\u202eb\u2028c"), "nor turn around what stands beside it")
	for text, want := range map[string]string{
		"{\"a\":1}":                 "{\"a\":1}",
		"\"a\u202eb\u009bc\u007f\"": `"a\u202eb\u009bc\u007f"`,
		"[\n\t1]":                   "[\n\t1]",
		`"\u001b[31m"`:              `"\u001b[31m"`,
	} {
		require.Equal(t, want, inert([]byte(text)))
		require.True(t, json.Valid([]byte(inert([]byte(text)))))
	}
}

func TestReadLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine+1)
	r := bufio.NewReaderSize(strings.NewReader("one\r\n\n"+long+"\nlast"), 16)
	for _, want := range []string{"one", ""} {
		text, err := readLine(r)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	_, err := readLine(r)
	require.ErrorIs(t, err, errLongLine)
	text, err := readLine(r)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "last", string(text))
}

func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{&quipu.ConflictError{SameFlow: true}, codeRefused},
		{store.ErrVersionTaken, codeRefused},
		{store.ErrNotFound, codeNotFound},
		{store.ErrStale, codeStale},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded), cli.CodeFailed},
		{errors.New("else"), cli.CodeFailed},
	} {
		require.Equal(t, c.want, codeOf(c.err), "%v", c.err)
	}
	var w worst
	require.NoError(t, w.err())
	for _, code := range []int{cli.CodeOK, codeTimeout, codeNotFound, codeEnded} {
		w.add(code)
	}
	require.Equal(t, codeNotFound, cli.Code(w.err()))
}

// TestIDsFromStandardInput: a line is a key without changes, so that the output of ls --keys
// works as input.
func TestIDsFromStandardInput(t *testing.T) {
	t.Parallel()
	a := &app{streams: cli.Streams{In: strings.NewReader("a\n\n b \r\n"), Getenv: clitest.Env(nil)}}
	keys, err := a.keys([]string{"-"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", " b "}, keys)
	a.streams.In = strings.NewReader("\nok\n" + strings.Repeat("k", 600))
	_, err = a.keys([]string{"-"})
	require.ErrorContains(t, err, "line 3: an id is at most 512 bytes")
	require.Equal(t, "unknown", a.who(), "no person is made up for the journal")
}
