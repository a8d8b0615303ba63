package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/store"
)

// TestDigits: the groups of 1.2, and what they say.
func TestDigits(t *testing.T) {
	t.Parallel()
	for digits, want := range map[int64][2]string{
		101100000000001: {"1 01 1 0 00 00000001", "trigger"},
		1000000000000:   {"0 01 0 0 00 00000000", "entered, its work is not done, 0 responses"},
		3100000000002:   {"0 03 1 0 00 00000002", "waits for a response, Leg1 entered 3 times, 2 responses"},
		201110200000001: {"2 01 1 1 02 00000001", "finalized, 2 arrivals, 1 response"},
	} {
		l := collation.ActivityLedger(digits)
		require.Equal(t, want, [2]string{grouped(l), decoded(l)})
	}
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

// TestShowDrawsTheGraph: in the order of the graph, what was not reached too.
func TestShowDrawsTheGraph(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("two.yaml", []byte(twoWays))
	require.NoError(t, err)
	at := func(activity string, dad collation.DAD, ledger collation.ActivityLedger, code int) store.InstanceView {
		return store.InstanceView{
			Key: collation.InstanceKey{Activity: activity, DAD: dad}, Instance: collation.Instance{Ledger: ledger, Code: code},
		}
	}
	v := &store.JobView{Instances: []store.InstanceView{
		at("left", ",0,0", 201100000000001, 200), at("right", ",0,0", 1100000000000, 0), at("start", ",0", collation.TriggerBorn, 200),
	}}
	var b bytes.Buffer
	require.NoError(t, graph(&b, v, f))
	require.Equal(t, strings.TrimPrefix(`
ACTIVITY  ADDRESS  LEDGER                CODE  
start     ,0       1 01 1 0 00 00000001  200   trigger
  left    ,0,0     2 01 1 0 00 00000001  200   finalized, 1 response
    deep                                       not reached
  right   ,0,0     0 01 1 0 00 00000000        waits for a response, 0 responses
`, "\n"), b.String())
	b.Reset()
	require.NoError(t, graph(&b, v, nil))
	require.Equal(t, 4, strings.Count(b.String(), "\n"), "without the definition: the instances")
}

func TestOpenRowsSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]collation.Row{
		"held: stuck":  {Held: collation.HeldStuck, NextAt: 5},
		"with w1":      {Holder: "w1", LeaseUntil: 5, NextAt: 5},
		"waits":        {},
		"goes out at":  {NextAt: 5},
		"looked at ag": {NextAt: 5, Publication: 1, PublishedAt: 4},
	} {
		require.Contains(t, standing(&r), want)
	}
	var b bytes.Buffer
	require.NoError(t, openRows(&b, &store.JobView{}))
	require.Empty(t, b.String())
}

// TestOpenLettersAreWhole: what can be done about an open dead letter is not cut.
func TestOpenLettersAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxCell) + "; look outside"
	var b bytes.Buffer
	openLetters(&b, []store.DeadView{
		{ID: 1, State: "retried", Letter: collation.DeadLetter{Message: "gone"}},
		{ID: 2, State: "open", Letter: collation.DeadLetter{Message: long}},
	})
	require.Equal(t, "\nDead letter 2: "+long+"\n", b.String())
}

// TestCellsAreHarmless: what users wrote cannot move a terminal's cursor.
func TestCellsAreHarmless(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b [31m", cell("a\tb\x1b[31m"))
	require.Len(t, []rune(cell(strings.Repeat("ü", 300))), maxCell)
	require.Equal(t, "not json", pretty([]byte("not json"), ""))
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
		{&store.AlreadyStartedError{SameFlow: true, SameInput: true}, cli.CodeOK},
		{&store.AlreadyStartedError{SameFlow: true}, codeRefused},
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

// TestIDsFromStandardInput: a line is a key as it is, so that what ls --keys
// prints is found again.
func TestIDsFromStandardInput(t *testing.T) {
	t.Parallel()
	a := &app{streams: cli.Streams{In: strings.NewReader("a\n\n b \r\n"), Env: clitest.Env(nil)}}
	keys, err := a.keys([]string{"-"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", " b "}, keys)
	a.streams.In = strings.NewReader("\nok\n" + strings.Repeat("k", 600))
	_, err = a.keys([]string{"-"})
	require.ErrorContains(t, err, "line 3: an id is at most 512 bytes")
	require.Equal(t, "quipu", a.who())
}
