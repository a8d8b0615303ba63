package history_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/history"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/quiputest/ordertest"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	ordertest.Play(t, func(w io.Writer, j *quiputest.Job) { tell(t, w, j) })
}

// tell prints the history of a job, with times since its start in seconds, because
// shorter times differ between runs.
func tell(t *testing.T, w io.Writer, j *quiputest.Job) {
	t.Helper()
	v := j.View()
	source := map[string]string{"order": ordertest.Order, "parcel": ordertest.Parcel}[v.Flow.Name]
	f, err := flow.Parse(v.Flow.Name, []byte(source))
	require.NoError(t, err)
	teller := history.New(f, nil)
	for _, e := range j.Journal() {
		teller.Add(e)
	}
	since := func(at collation.Micros) string {
		return (time.Duration(at-v.Started) * time.Microsecond).Round(time.Second).String()
	}
	fmt.Fprintf(w, "%s\n", v.Key)
	for _, ev := range teller.Events() {
		fmt.Fprintf(w, "%9s %-8s %s", since(collation.Micros(ev.Time.UnixMicro())), ev.Kind, ev.Activity)
		if ev.Element >= 0 {
			fmt.Fprintf(w, "[%d]", ev.Element)
		}
		fmt.Fprintf(w, " %s: %s", ev.Address, ev.Text)
		if !ev.Due.IsZero() {
			fmt.Fprintf(w, "; due %s", since(collation.Micros(ev.Due.UnixMicro())))
		}
		if (ev.Waited + ev.Ran).Round(time.Second) > 0 {
			fmt.Fprintf(w, "; waited %v, ran %v", ev.Waited.Round(time.Second), ev.Ran.Round(time.Second))
		}
		fmt.Fprintln(w)
		value(w, "in", ev.Input)
		value(w, "out", ev.Output)
		if ev.Error != nil {
			fmt.Fprintf(w, "%12s %s: %s\n", "error", ev.Error.Class, ev.Error.Message)
		}
	}
}

func value(w io.Writer, name string, v *history.Value) {
	switch {
	case v == nil:
	case v.Missing != "":
		fmt.Fprintf(w, "%12s (%s)\n", name, v.Missing)
	default:
		fmt.Fprintf(w, "%12s %s\n", name, v.JSON)
	}
}

// An input that cannot be proved is not told: one that evaluates to something else than
// what was sent, one that needs a missing output, and any without the flow.
func TestInputsAreHeldToTheirSums(t *testing.T) {
	t.Parallel()
	const chain = `
flow: chain
version: "1"
activities:
  start: {type: trigger}
  first: {type: worker, topic: t, input: 1}
  second: {type: worker, topic: t, input: "${ first.output }"}
transitions: {start: [first], first: [second]}
`
	f, err := flow.Parse("chain", []byte(chain))
	require.NoError(t, err)
	beside := journal.Digest{1}
	first, second := journal.GUID{1}, journal.GUID{2}
	entries := func(sent string, output *journal.Response) []*journal.Entry {
		return []*journal.Entry{
			{Kind: journal.KindCreated, Seq: 1, Time: 1, Activity: "start", DAD: ",0", Input: []byte(`{}`), Dispatched: []journal.Dispatched{
				{GUID: first, Kind: journal.MessageRequest, Activity: "first", DAD: ",0,0", Topic: "t", Input: journal.SumOf([]byte(`1`))},
			}},
			{Kind: journal.KindLeg2, Seq: 2, Time: 2, Activity: "first", DAD: ",0,0", Ledger: 201100000000001, Response: output, Dispatched: []journal.Dispatched{
				{GUID: second, Kind: journal.MessageRequest, Activity: "second", DAD: ",0,0,0", Topic: "t", Input: journal.SumOf([]byte(sent))},
			}},
		}
	}
	payload := func(d journal.Digest) ([]byte, error) {
		if d != beside {
			return nil, errors.New("it was removed")
		}
		return []byte(`7`), nil
	}
	inline := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Request: first, Output: []byte(`7`)}
	stored := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Request: first, Ref: beside}
	gone := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Request: first, Ref: journal.Digest{2}}
	for name, c := range map[string]struct {
		flow        *flow.Flow
		payload     history.Payload
		entries     []*journal.Entry
		output, got string
	}{
		"as it was":             {f, payload, entries(`7`, inline), `7`, `7`},
		"stored beside":         {f, payload, entries(`7`, stored), `7`, `7`},
		"another than was sent": {f, payload, entries(`8`, inline), `7`, "it evaluates to something else than what was sent"},
		"beside, and gone":      {f, payload, entries(`7`, gone), "it was removed", "it cannot be evaluated again: "},
		"beside, not asked for": {f, nil, entries(`7`, stored), "stored beside its entry, SHA-256 01", "it cannot be evaluated again: "},
		"no definition":         {nil, payload, entries(`7`, inline), `7`, "the flow's definition cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			teller := history.New(c.flow, c.payload)
			for _, e := range c.entries {
				teller.Add(e)
			}
			events := teller.Events()
			last := events[len(events)-1]
			require.Equal(t, []any{history.KindSent, "second"}, []any{last.Kind, last.Activity})
			require.Contains(t, said(last.Input), c.got)
			done := events[len(events)-2]
			require.Equal(t, []any{history.KindDone, "first"}, []any{done.Kind, done.Activity})
			require.Contains(t, said(done.Output), c.output)
		})
	}
}

// What is taken over was not sent again, so the journal has no sum of its input. It is what the flow
// evaluates to, as it did when it was sent.
func TestInputsOfWhatIsTakenOver(t *testing.T) {
	t.Parallel()
	f, err := flow.Parse("listed", []byte(`
flow: listed
version: "1"
activities:
  start: {type: trigger}
  reserve: {type: worker, topic: t, each: "${ [7, 8] }", input: {sku: "${ item }"}}
  pay: {type: worker, topic: p, input: {n: "${ 1 + 2 }"}, output: "${ pay.output }"}
  nap: {type: hook, sleep: 1h}
transitions: {start: [reserve, pay, nap]}
`))
	require.NoError(t, err)
	leg1 := journal.GUID{1}
	answer := func(seq int64, element int, taken *journal.Taken) *journal.Entry {
		return &journal.Entry{Kind: journal.KindLeg2, Seq: seq, Time: seq, Activity: "reserve", DAD: ",0,0", Response: &journal.Response{
			Kind: journal.ResponseTerminal, Code: 200, Request: collation.RequestGUID(leg1, element), Element: element, Output: []byte(`1`), Taken: taken,
		}}
	}
	events := told(f, []*journal.Entry{
		{Kind: journal.KindCreated, Seq: 1, Time: 1, Activity: "start", DAD: ",0", Input: []byte(`{}`)},
		{Kind: journal.KindLeg1, Seq: 2, Time: 2, GUID: leg1, Activity: "reserve", DAD: ",0,0", Elements: &journal.Elements{
			Count: 2, Parallel: 2, Inputs: journal.Sums{}.Append(journal.Sum{}).Append(journal.SumOf([]byte(`{"sku":8}`))),
		}},
		answer(3, 0, &journal.Taken{Generation: 1, Seq: 4}), answer(4, 1, nil),
		{Kind: journal.KindLeg2, Seq: 5, Time: 5, Activity: "pay", DAD: ",0,0", Result: &journal.Result{Code: 200, Output: []byte(`1`), Taken: &journal.Taken{Generation: 1, Seq: 5}}},
		{Kind: journal.KindLeg2, Seq: 6, Time: 6, Activity: "nap", DAD: ",0,0", Response: &journal.Response{
			Kind: journal.ResponseTerminal, Code: 200, By: journal.ByTimer, Taken: &journal.Taken{Generation: 1, Seq: 6},
		}},
	})
	pay, nap := events[len(events)-2], events[len(events)-1]
	require.Equal(t, `{"n":3}`, said(pay.Input))
	require.Nil(t, nap.Input)
	events = events[:len(events)-2]
	require.Equal(t, "1 of 2 elements sent to t, 2 at a time; the others are taken over", events[1].Text)
	taken, sent := events[len(events)-2], events[len(events)-1]
	require.Equal(t, []any{0, "done, taken over from generation 1"}, []any{taken.Element, taken.Text})
	require.Equal(t, `{"sku":7}`, said(taken.Input))
	require.Equal(t, 1, sent.Element)
	require.Equal(t, `{"sku":8}`, said(sent.Input))
}

// A resumed job says which generation it goes on with, and who decided, if that is known. What
// is taken over names its generation, and whose it is.
func TestATellerOfAResumedJob(t *testing.T) {
	t.Parallel()
	child := journal.JobID{7}
	const begins = "started: flow f version 1; generation 2 goes on with generation 1"
	for name, c := range map[string]struct {
		from journal.From
		says string
	}{
		"somebody decided":        {journal.From{Who: "ann"}, begins + "; decided by ann"},
		"from an activity":        {journal.From{Activity: "pay", Who: "ann", Reason: "paid in"}, begins + " from pay on; decided by ann (paid in)"},
		"nobody knows who":        {journal.From{}, begins},
		"nobody knows who, a why": {journal.From{Reason: "paid in"}, begins + " (paid in)"},
	} {
		c.from.Generation = 1
		events := told(nil, []*journal.Entry{
			{Kind: journal.KindCreated, Seq: 1, Time: 1, Generation: 2, Activity: "start", DAD: ",0", Flow: &journal.FlowRef{Name: "f", Version: "1"}, From: &c.from},
			{Kind: journal.KindLeg2, Seq: 2, Time: 2, Activity: "first", DAD: ",0,0", Response: &journal.Response{
				Kind: journal.ResponseTerminal, Code: 200, Taken: &journal.Taken{Generation: 1, Seq: 4},
			}},
			{Kind: journal.KindLeg2, Seq: 3, Time: 3, Activity: "pay", DAD: ",0,0,0", Response: &journal.Response{
				Kind: journal.ResponseTerminal, Code: 200, Taken: &journal.Taken{Generation: 3, Chain: journal.GUID(child), Seq: 9},
			}},
			{Kind: journal.KindResumed, Seq: 4, Time: 4, Operator: &journal.Operator{Action: "resume"}},
		})
		require.Equal(t, c.says, events[0].Text, name)
		require.Equal(t, "done, taken over from generation 1", events[1].Text)
		require.Equal(t, "done, taken over from generation 3 of its child", events[2].Text)
		require.Equal(t, child, events[2].Job)
		require.Equal(t, "resume, the next generation goes on", events[3].Text)
	}
}

func said(v *history.Value) string { return string(v.JSON) + v.Missing }
