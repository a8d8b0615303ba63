package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/edit"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

const hour = int64(3600e6)

// pauses are what the functions of testdata wait for.
var pauses = map[string]journal.Pause{
	"nap": replaytest.Sleep("nap", "1", hour), "later": replaytest.Sleep("later", "4", hour),
	"ok":  replaytest.Signal("ok", "2", "order.ok", "order-42", 2*hour),
	"inv": replaytest.Child("inv", "3", "invoice", `{"total":5}`),
}

// recipes are the journals of testdata/journals.txt: how each is made.
var recipes = sync.OnceValue(func() map[string]string {
	text, err := os.ReadFile(filepath.Join("testdata", "journals.txt"))
	if err != nil {
		panic(err)
	}
	out := map[string]string{}
	for block := range strings.SplitSeq(string(text), "\njournal ") {
		name, lines, _ := strings.Cut(block, "\n")
		out[name], _, _ = strings.Cut(lines, "\n----\n")
	}
	return out
})

// made makes a journal of testdata/journals.txt. Its lines change another journal, if the first
// is lie(…); set Options and name answers, in turn, up to a flow and those that its awaits may
// start, if there is any; or let a durable function do one thing after the other.
func made(name string) *replaytest.Journal {
	recipe, found := recipes()[name]
	if !found {
		panic("no journal " + name)
	}
	if rest, lied := strings.CutPrefix(recipe, "lie("); lied {
		base, lines, _ := strings.Cut(rest, ")\n")
		j := made(base)
		return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
			changed(j, &entries, lines)
			return entries
		})
	}
	if strings.Contains(recipe, "flow: ") || strings.Contains(recipe, "Activities = ") {
		o, of := options(recipe)
		return replaytest.Family(o)[of]
	}
	lines, stepwise := strings.CutPrefix(recipe, "stepwise()\n")
	f := replaytest.NewFunction(collation.Mode{Stepwise: stepwise})
	verbs := map[string]any{}
	for v, i := reflect.ValueOf(f), 0; i < v.NumMethod(); i++ {
		verbs[v.Type().Method(i).Name] = v.Method(i).Interface()
	}
	verbs["Suspend"] = func(names []string) { f.Answer(suspends(names)) }
	verbs["Outcome"] = func(name, output string) {
		f.Outcome(name, &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output)})
	}
	(&edit.Editor{Names: verbs}).Do(lines)
	return f.Journal()
}

func suspends(names []string) *journal.Response {
	r := &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK}
	for _, name := range names {
		r.Pauses = append(r.Pauses, pauses[name])
	}
	return r
}

// options reads how a journal of a flow is made, and which of its family it is.
func options(recipe string) (o replaytest.Options, of int) {
	lines, text, _ := strings.Cut("\n"+recipe, "\nflow: ")
	var answers []*journal.Response
	var codes []int
	e := edit.Editor{
		Root: func(name string) any { return edit.Field(&o, name) },
		Names: map[string]any{
			"second": replaytest.Choose(second), "of": func(n int) { of = n }, "signals": func(all []int) { codes = all },
			"suspend": func(names []string) { answers = append(answers, suspends(names)) },
			"any":     func() { answers = append(answers, nil) },
			"answer": func(output []byte) {
				answers = append(answers, &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: output})
			},
			"refuse": func(kind journal.ResponseKind, code int, class, message string) {
				answers = append(answers,
					&journal.Response{Kind: kind, Code: code, Error: &journal.Failure{Class: class, Message: message}})
			},
		},
	}
	e.Do(lines)
	asked := 0
	o.Respond = func(string, int) *journal.Response { // the last one again and again
		if asked++; len(answers) == 0 {
			return nil
		}
		return answers[min(asked, len(answers))-1]
	}
	o.Signal = func(_ string, number int) int {
		if len(codes) == 0 {
			return 0
		}
		return codes[min(number, len(codes))-1]
	}
	for i, one := range strings.Split("flow: "+text, "---\n") {
		if text == "" {
			break
		}
		f, err := flow.Parse("f.yaml", []byte(one))
		if err != nil {
			panic(err)
		}
		if i == 0 {
			o.Flow = f
		} else {
			o.Others = append(o.Others, f)
		}
	}
	return o, of
}

// The journals of testdata verify clean, and have these entries; then their state, how much is open,
// and what is not proved.
func TestJournals(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, filepath.Join("testdata", "journals.txt"), func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		j := made(d.CmdArgs[0].Key)
		requireClean(t, j, false)
		r := requireClean(t, j, !strings.HasPrefix(d.Input, "lie("))
		for i, e := range j.Entries() {
			fmt.Fprintf(&b, "%d %s", i+1, e.Kind)
			if e.Effect != nil {
				fmt.Fprintf(&b, " %s", e.Effect.Name)
			}
			if e.Activity != "" {
				fmt.Fprintf(&b, " of %s %s", e.Activity, e.DAD)
			}
			if r := e.Response; r != nil {
				fmt.Fprintf(&b, ", %s", r.Kind)
			}
			if e.Close != nil {
				fmt.Fprintf(&b, ", %s", e.Close.State)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s, open %d", r.State, r.OpenCount)
		for _, c := range r.Checks {
			if c.Note != "" && !strings.HasPrefix(c.Note, "no tables in this input") {
				fmt.Fprintf(&b, "; %s: %s", c.Check, c.Note)
			}
		}
		return b.String() + "\n"
	})
}

// second makes every choice 1: 2 attempts, and two idempotent effects for each request,
// completed in time.
func second(n int) int { return min(1, n-1) }

// wake is the wake-up that a signal's delivery to the wait writes.
func wake(w *collation.Wait, signal journal.GUID, code int) collation.Row {
	row, _ := w.Deliver(&collation.Signal{GUID: signal, Topic: w.Topic, Key: w.Key, Code: code, Payload: []byte(`null`)}, 1,
		collation.Mode{})
	return row
}

// alter changes one value of a map, found by a test on it.
func alter[K comparable, V any](m map[K]V, want func(K, V) bool, change func(*V)) {
	for k, v := range m {
		if want(k, v) {
			change(&v)
			m[k] = v
			return
		}
	}
	panic("nothing to edit")
}

func isRequest(_ journal.GUID, r collation.Row) bool { return r.Kind == journal.MessageRequest }

// order is the start of the job that runs the compensations of a request.
func order(request journal.GUID) journal.Dispatched {
	id := collation.UndoID(request)
	return journal.Dispatched{GUID: id.Start(), Kind: journal.MessageStart, DAD: ",0", Job: id}
}
