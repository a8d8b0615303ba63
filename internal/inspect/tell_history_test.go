package inspect_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/edit"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/testkit/ordertest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/view"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	ordertest.Play(t, func(w io.Writer, j *quiputest.Job) { tell(t, w, j) })
}

// tell prints the events of a job, with times since its start in seconds, because
// shorter times differ between runs.
func tell(t *testing.T, w io.Writer, j *quiputest.Job) {
	t.Helper()
	v := j.Info()
	tables(t, j)
	source := map[string]string{"order": ordertest.Order, "parcel": ordertest.Parcel}[v.Flow]
	f, err := flow.Parse(v.Flow, []byte(source))
	require.NoError(t, err)
	fmt.Fprintf(w, "%s\n", v.Key)
	show(w, inspect.Tell(f, nil, j.Journal()), func(at time.Time) string {
		return at.Sub(v.Started).Round(time.Second).String()
	})
}

// show prints events, with times as they are to be written.
func show(w io.Writer, events []view.Event, when func(time.Time) string) {
	for _, ev := range events {
		fmt.Fprintf(w, "%9s %-8s %s", when(ev.Time), ev.Kind, ev.Activity)
		if ev.Element != nil {
			fmt.Fprintf(w, "[%d]", *ev.Element)
		}
		fmt.Fprintf(w, " %s: %s", ev.Address, ev.Text)
		if !ev.Due.IsZero() {
			fmt.Fprintf(w, "; due %s", when(ev.Due))
		}
		if waited, ran := time.Duration(ev.Waited), time.Duration(ev.Ran); (waited + ran).Round(time.Second) > 0 {
			fmt.Fprintf(w, "; waited %v, ran %v", waited.Round(time.Second), ran.Round(time.Second))
		}
		fmt.Fprintln(w)
		value(w, "in", ev.Input)
		value(w, "out", ev.Output)
		if ev.Error != nil {
			fmt.Fprintf(w, "%12s %s: %s\n", "error", ev.Error.Class, ev.Error.Message)
		}
	}
}

func value(w io.Writer, name string, v *view.Value) {
	switch {
	case v == nil:
	case v.Missing != "":
		fmt.Fprintf(w, "%12s (%s)\n", name, v.Missing)
	default:
		fmt.Fprintf(w, "%12s %s\n", name, v.JSON)
	}
}

// flows are those of the files in testdata/told.
var flows = map[string]string{
	"chain": `
flow: chain
version: "1"
activities:
  start: {type: trigger}
  first: {type: worker, topic: t, input: 1}
  second: {type: worker, topic: t, input: "${ first.output }"}
transitions: {start: [first], first: [second]}
`, "listed": `
flow: listed
version: "1"
activities:
  start: {type: trigger}
  reserve: {type: worker, topic: t, each: "${ [7, 8] }", input: {sku: "${ item }"}}
  pay: {type: worker, topic: p, input: {n: "${ 1 + 2 }"}, output: "${ pay.output }"}
  nap: {type: hook, sleep: 1h}
transitions: {start: [reserve, pay, nap]}
`,
}

// TestTold tells the entries that the files in testdata/told make, of a flow or of none. Output 01
// is stored beside its entry; the argument beside lets it be read.
func TestTold(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/told", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var all []*journal.Entry
			e := edit.Editor{Names: map[string]any{
				"sum": func(text string) journal.Sum { return journal.SumOf([]byte(text)) }, "request": collation.RequestGUID,
				"second": func(text string) journal.Sums {
					return journal.Sums{}.Append(journal.Sum{}).Append(journal.SumOf([]byte(text)))
				},
			}, Root: func(name string) any {
				if n, err := strconv.Atoi(name); err == nil {
					return all[n-1]
				}
				return &all
			}}
			e.Do(d.Input)
			var f *flow.Flow
			if text := flows[d.CmdArgs[0].Key]; text != "" {
				var err error
				f, err = flow.Parse("f.yaml", []byte(text))
				require.NoError(t, err)
			}
			var payload func(journal.Digest) ([]byte, error)
			if d.HasArg("beside") {
				payload = func(digest journal.Digest) ([]byte, error) {
					if digest != (journal.Digest{1}) {
						return nil, errors.New("it was removed")
					}
					return []byte(`7`), nil
				}
			}
			var b strings.Builder
			events := inspect.Tell(f, payload, all)
			show(&b, events, func(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) })
			for i := range events {
				if j := events[i].Job; !j.IsZero() {
					fmt.Fprintf(&b, "%q is about job %s\n", events[i].Text, j)
				}
			}
			return b.String()
		})
	})
}
