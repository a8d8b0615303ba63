package collation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// maxTrips is how often any message may ask for state, however large its job is.
const maxTrips = 6

// wide is a flow with one part that is n wide, and what happens in it.
type wide struct {
	flow func(n int) string
	one  bool // it has one activity, whose function waits for n things
	act  func(w *world, n int, carry func(collation.Message))
}

func list(n int) string { return strings.TrimSuffix(strings.Repeat(`{"x":1},`, n), ",") }

func elements(how string) func(int) string {
	return func(int) string {
		return "flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n" +
			"  all: {type: worker, topic: t, each: start.output.list" + how + ", input: \"${ item }\"}\ntransitions: {start: [all]}\n"
	}
}

// fan is a flow of n activities behind the trigger.
func fan(activity string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		var to []string
		b.WriteString("flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n")
		for i := range n {
			fmt.Fprintf(&b, "  a%d: {%s}\n", i, activity)
			to = append(to, fmt.Sprintf("a%d", i))
		}
		fmt.Fprintf(&b, "transitions: {start: [%s]}\n", strings.Join(to, ", "))
		return b.String()
	}
}

// suspends lets the only worker wait for n things, and then end.
func suspends(kind journal.PauseKind) func(w *world, n int, carry func(collation.Message)) {
	return func(w *world, n int, carry func(collation.Message)) {
		r := &journal.Response{Kind: journal.ResponseSuspended}
		for i := range n {
			r.Pauses = append(r.Pauses, journal.Pause{
				PauseRef: journal.PauseRef{Kind: kind, Name: fmt.Sprint("p", i)}, For: 1e9, Topic: "t", Key: "k", Flow: "g",
				Input: []byte("1"),
			})
		}
		carry(*journaltest.Response(w.due("a0", 0), r))
		carry(*journaltest.Response(w.due("a0", 0), &journal.Response{Kind: journal.ResponseTerminal, Code: 200}))
	}
}

// answers lets all requests of a world succeed but the last one.
func answers(w *world, _ int, carry func(collation.Message)) {
	asked := slices.Clone(w.asked)
	for i := range asked {
		r := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte("1")}
		if i == len(asked)-1 {
			r = &journal.Response{
				Kind: journal.ResponseTerminal, Code: 500, Error: &journal.Failure{Class: "error", Message: "no"},
			}
		}
		if w.state.Rows[asked[i].GUID] != nil {
			carry(*journaltest.Response(&asked[i], r))
		}
	}
}

func none(*world, int, func(collation.Message)) {}

var wides = map[string]wide{
	"elements":             {elements(""), false, answers},
	"elements, few a time": {elements(", parallel: 2"), false, answers},
	"workers":              {fan("type: worker, topic: t, input: \"${ start.output }\""), false, answers},
	"awaits":               {fan("type: await, flow: g, input: \"${ start.output }\""), false, none},
	"hooks":                {fan("type: hook, signal: t, key: k, sleep: 1h, within: 2h"), false, none},
	"sleeps":               {fan("type: worker, topic: t"), true, suspends(journal.PauseSleep)},
	"signals":              {fan("type: worker, topic: t"), true, suspends(journal.PauseSignal)},
	"children":             {fan("type: worker, topic: t"), true, suspends(journal.PauseChild)},
}

// J6: how often a message asks for state does not grow with the elements, branches and pauses of
// its job, also in a job that resumes or forks another one, whatever that has of them.
func TestJ6TripsDoNotGrowWithTheJob(t *testing.T) {
	t.Parallel()
	ok := &flow.Result{Ran: true, Code: 200, Output: []byte("1")}
	bad := &flow.Result{Ran: true, Code: 500, Error: []byte(`{"class":"error","code":500,"message":"no"}`)}
	pasts := map[string]func(i int) []collation.Past{
		"anew": nil, "resumes": func(int) []collation.Past { return nil },
		"has all": func(int) []collation.Past { return []collation.Past{{Generation: 1, Seq: 1, Result: ok}} },
		"has most": func(i int) []collation.Past {
			return []collation.Past{{Generation: 1, Seq: 1, Result: []*flow.Result{bad, ok, ok}[i%3]}}
		},
	}
	for name, x := range wides {
		for of, past := range pasts {
			for _, mode := range []collation.Mode{
				{Fold: true, Resend: 1e6}, {Resend: 1e6}, {Stepwise: true, Resend: 1e6},
			} {
				for _, n := range []int{1, 32, 200} {
					t.Run(fmt.Sprintf("%s/%s/fold %t stepwise %t/%d", name, of, mode.Fold, mode.Stepwise, n), func(t *testing.T) {
						t.Parallel()
						x.play(t, n, mode, past)
					})
				}
			}
		}
	}
}

func (x wide) play(t *testing.T, n int, mode collation.Mode, past func(int) []collation.Past) {
	width := n
	if x.one {
		width = 1
	}
	f, err := flow.Parse("flow.yaml", []byte(x.flow(width)))
	require.NoError(t, err)
	w := newWorld(f, "k", []byte(`{"list":[`+list(n)+`]}`), mode)
	if past != nil {
		w.resumes(n, past)
	}
	if x.one {
		delete(w.past, "a0") // it is asked again
	}
	carry := func(m collation.Message) {
		for done := false; !done; m.Entered = true {
			p, trips := w.decided(&m)
			require.LessOrEqual(t, trips, maxTrips, "%s %s", m.Kind, m.Activity)
			w.commit(p)
			done = p.Done
		}
	}
	settle := func() {
		for len(w.queue) > 0 {
			m := w.queue[0]
			w.queue = w.queue[1:]
			carry(m)
		}
	}
	settle()
	if len(w.asked) > 0 {
		x.act(w, n, carry)
	}
	settle()
	require.NotEqual(t, journal.JobQuarantined, w.state.Job.State)
}

// resumes makes the world's job one that goes on from another, which has what past says of each
// of its n elements or branches. Its children have completed.
func (w *world) resumes(n int, past func(int) []collation.Past) {
	from := &journal.From{Activity: "all", DAD: ",0,0"}
	w.past, w.ends = map[string][]collation.Past{}, map[journal.JobID]*collation.End{}
	for i := range n {
		w.past[fmt.Sprintf("all[%d]", i)], w.past[fmt.Sprint("a", i)] = past(i), past(i)
		child := journal.JobID{1, byte(i), byte(i >> 8)}
		w.ends[child] = &collation.End{Job: child, Generation: 1, Seq: 1, Output: []byte("1")}
		of := &journal.PauseRef{Kind: journal.PauseChild, Name: fmt.Sprint("p", i)}
		from.Children = append(from.Children, journal.FromChild{Activity: fmt.Sprint("a", i), DAD: ",0,0", Job: child},
			journal.FromChild{Activity: "a0", DAD: ",0,0", Job: child, Of: of})
	}
	w.state.Job.From = from
}
