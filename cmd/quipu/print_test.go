package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// TestDigits: the groups of 1.2, and what they say.
func TestDigits(t *testing.T) {
	t.Parallel()
	for digits, want := range map[int64][2]string{
		101100000000001: {"1 01 1 0 00 00000001", "trigger"},
		1000000000000:   {"0 01 0 0 00 00000000", "entered, its work is not done, 0 responses"},
		3100000000002:   {"0 03 1 0 00 00000002", "Leg1 complete, Leg1 entered 3 times, 2 responses"},
		201110200000001: {"2 01 1 1 02 00000001", "finalized, 2 arrivals, 1 response"},
		10200000000:     {"0 00 0 1 02 00000000", "not entered, 2 arrivals, 0 responses"},
		100000000:       {"0 00 0 0 01 00000000", "not entered, 1 arrival, none taken, 0 responses"},
	} {
		i := collation.Instance{Ledger: collation.ActivityLedger(digits)}
		require.Equal(t, want, [2]string{grouped(i.Ledger), decoded(&i)})
	}
	i := collation.Instance{Ledger: 1100000000003, More: collation.More{Open: 3, Count: 7, Attempt: 2}}
	require.Equal(t, "Leg1 complete, 3 responses, 4 of 7 elements ended, attempt 2", decoded(&i))
}

const twoWays = `flow: two
version: "1"
activities:
  start: {type: trigger}
  left: {type: worker, topic: echo}
  deep: {type: worker, topic: echo}
  right: {type: worker, topic: echo}
transitions: {start: [left, right], left: [deep]}
`

// TestShowListsInstances: in the order of the graph, each in the order of its passes.
func TestShowListsInstances(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("two.yaml", []byte(twoWays))
	require.NoError(t, err)
	at := func(activity string, dad collation.DAD, ledger collation.ActivityLedger, code int) store.InstanceView {
		return store.InstanceView{
			Key:      collation.InstanceKey{Activity: activity, DAD: dad},
			Instance: collation.Instance{Ledger: ledger, Code: code},
		}
	}
	v := &store.JobView{
		Instances: []store.InstanceView{
			at("deep", ",0,10,0", 1100000000000, 0), at("deep", ",0,2,0", 1100000000000, 0), at("deep", ",0,0,0", 1100000000000, 0),
			at("right", ",0,0", 1100000000000, 0), at("left", ",0,0", 201100000000001, 200), at("start", ",0", collation.TriggerBorn, 200),
		},
		Waits: []collation.Wait{{Activity: "right", DAD: ",0,0", Topic: "go", Key: "k 1", Origin: 3}},
	}
	var b bytes.Buffer
	effects := []store.JobEffect{
		{
			EffectRow: store.EffectRow{Name: "charge[1]", Class: "guarded", State: store.EffectCompleted, Key: journal.Digest{1}},
			Activity:  "left", DAD: ",0,0",
		},
		{EffectRow: store.EffectRow{Name: "mail", Class: "idempotent", State: store.EffectStarted}, Activity: "left", DAD: ",0,0"},
		{EffectRow: store.EffectRow{Name: "mail", Class: "idempotent", State: store.EffectNotDone}, Activity: "right", DAD: ",0,0"},
		{
			EffectRow: store.EffectRow{Name: "book", Class: "guarded", State: store.EffectCompleted, Error: &journal.Failure{}},
			Activity:  "right", DAD: ",0,0",
		},
		{EffectRow: store.EffectRow{Name: "refund", Class: store.ClassUndo, State: store.EffectStarted}, Activity: "right", DAD: ",0,0"},
	}
	s := &shower{app: &app{streams: cli.Streams{Out: &b}}, digits: true}
	one := &shown{JobView: v, flow: f, effects: effects, elements: map[journal.GUID]int{{7}: 4}}
	effects[0].Request = journal.GUID{7}
	require.NoError(t, s.tables(one))
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
	one.flow, one.effects = nil, nil
	require.NoError(t, s.tables(one))
	require.Equal(t, 10, strings.Count(b.String(), "\n"), "without the definition: as they come")
	b.Reset()
	s.digits = false
	require.NoError(t, s.tables(one))
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
	for want, r := range map[string]collation.Row{
		"held: stuck":                   {Held: collation.HeldStuck, NextAt: 5},
		"held until o":                  {Held: collation.HeldParallel, NextAt: 5},
		"with w1":                       {Request: collation.Request{Holder: "w1"}},
		"waits":                         {},
		"suspended: waits for 2 things": {Request: collation.Request{Pauses: make([]collation.Pause, 2)}},
		"goes out at":                   {NextAt: 5},
		"looked at ag":                  {NextAt: 5, Publication: 1, PublishedAt: 4},
	} {
		require.Contains(t, standing(&r), want)
	}
	var b bytes.Buffer
	require.NoError(t, sections(&b, openRows(&b, &store.JobView{}, false)))
	require.Empty(t, b.String())
	require.NoError(t, sections(&b, openRows(&b, &store.JobView{
		Instances: []store.InstanceView{{
			Key: collation.InstanceKey{Activity: "items"}, Instance: collation.Instance{More: collation.More{Count: 4}},
		}},
		Rows: []collation.Row{{Kind: "request", Activity: "items", Request: collation.Request{Element: 3}}},
	}, false)))
	require.Contains(t, b.String(), "items[3]")
}

// TestOpenLettersAreWhole: the advice about an open dead letter is not cut.
func TestOpenLettersAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxCell) + "; look outside"
	var b bytes.Buffer
	openLetters(&b, []quipu.DeadLetter{{ID: 1, State: "retried", Message: "gone"}, {ID: 2, State: "open", Message: long}})
	require.Equal(t, "\nDead letter 2: "+long+"\n", b.String())
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
