package collation_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// TestTranscripts drives Step by the files in testdata. Each is a readable history: what came,
// what was decided, every digit that changed.
//
// Commands: mode normal|fold|stepwise [writer=…] [build=…] · flow (a flow file) · start key=… (the
// input) · engine [same] (handles the next engine message;
// same: in the transaction of the commit before) · once (one commit of it) ·
// respond activity [code=…] [kind=…] [class=…] [again] (output or message) ·
// redeliver [n] (the last message again, n times) · ledgers · signal topic=… key=…
// [code=…] (payload) · timer activity · bound activity · outcome activity
// [code=…] [state=…] (output or message) · interrupt [code=…] [no-throw]
// [descend] (reason) · suspend activity (what a durable function waits for, see
// suspension) · wake activity sleep|timeout name · undo activity (it registered
// compensations) · forget (the next engine message is lost) · continue [once|same]
// [n=…] (the last message goes on: once is one commit of it, same is one in the
// transaction of the commit before) · hold [activity] (an engine cannot handle the last
// message, or a response) · row activity (its rows).
//
// What happens beside: overdue activity (its time is over) · stuck activity (an engine
// held its request) · recorded activity [open] (effects of its request; open: one has no
// end) · loaded (the job, from the store) · ledger activity address digits (somebody has changed it).
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt") // fuzz corpora are beside them
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := &script{mode: collation.Mode{Resend: 5_000_000}}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type script struct {
	mode collation.Mode
	flow *flow.Flow
	w    *world
	last collation.Message
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "mode":
		s.mode.Writer, s.mode.Build = arg(t, d, "writer", s.mode.Writer), arg(t, d, "build", s.mode.Build)
		if s.mode.Stepwise, s.mode.Fold = d.HasArg("stepwise"), d.HasArg("fold"); s.w != nil {
			s.w.mode = s.mode
		}
		return ""
	case "flow":
		f, err := flow.Parse("flow.yaml", []byte(d.Input))
		if err != nil {
			return err.Error()
		}
		s.flow = f
		return fmt.Sprintf("%s %s, %d activities", f.Name(), f.Version(), len(f.Activities()))
	case "start":
		s.w = newWorldAt(s.flow, arg(t, d, "key", ""), []byte(d.Input), s.mode, collation.Micros(arg(t, d, "delay", 0))*1000)
		s.last = *journaltest.Message(&s.w.plans[0].Insert[0])
		return s.w.describe(s.w.plans[0])
	case "engine", "once":
		s.last, s.w.queue = s.w.queue[0], s.w.queue[1:]
		if s.last.Alone = d.HasArg("alone"); d.HasArg("same") {
			return s.same()
		}
		return s.deliver(d.Cmd == "once")
	case "respond":
		s.last = s.response(t, d)
		return s.deliver(d.HasArg("once"))
	case "suspend":
		s.last = s.suspension(t, d)
		return s.deliver(d.HasArg("once"))
	case "wake":
		s.last = s.wake(t, d)
		return s.deliver(d.HasArg("once"))
	case "undo":
		return s.hasUndo(t, d)
	case "redeliver":
		s.last.Entered = false
		out := ""
		for range arg(t, d, "n", 1) {
			out = s.deliver(false)
		}
		return out
	case "ledgers":
		return s.ledgers()
	case "forget":
		s.w.queue = s.w.queue[1:]
		return ""
	default:
		if out, ok := s.outside(t, d); ok {
			return out
		}
		if out, ok := s.beside(t, d); ok {
			return out
		}
		t.Fatalf("unknown command %s", d.Cmd)
		return ""
	}
}

// arg is an argument of a command, or what it is otherwise.
func arg[T int | string](t *testing.T, d *datadriven.TestData, name string, otherwise T) T {
	t.Helper()
	d.MaybeScanArgs(t, name, &otherwise)
	return otherwise
}

func (s *script) deliver(once bool) string {
	var plans []*collation.Plan
	if once {
		s.w.forget()
		p := s.w.step(&s.last)
		s.w.commit(p)
		plans = append(plans, p)
	} else {
		plans = s.w.handle(s.last)
	}
	var b strings.Builder
	for _, p := range plans {
		b.WriteString(s.w.describe(p))
	}
	return b.String()
}

// response answers the open request of an activity. The input is the output, or an error's
// message.
func (s *script) response(t *testing.T, d *datadriven.TestData) collation.Message {
	r := &journal.Response{Kind: journal.ResponseKind(arg(t, d, "kind", "terminal")), Code: arg(t, d, "code", 200), Undone: d.HasArg("undone")}
	if r.Code == 200 {
		r.Output = []byte(d.Input)
	} else {
		r.Error = &journal.Failure{Class: arg(t, d, "class", "error"), Message: d.Input}
	}
	if d.HasArg("ref") {
		r.Output, r.Ref = nil, journal.Digest{1}
	}
	element, at := arg(t, d, "element", 0), arg(t, d, "at", "")
	row := s.w.due(d.CmdArgs[0].Key, element)
	for i := range s.w.asked {
		if x := &s.w.asked[i]; x.Activity == d.CmdArgs[0].Key && x.Element == element &&
			(row == nil || string(x.DAD) == at) {
			row = x
		}
	}
	if row == nil {
		t.Fatalf("nobody asked %s", d.CmdArgs[0].Key)
	}
	return *journaltest.Response(row, r)
}

// ledgers lists the ledgers at the end.
func (s *script) ledgers() string {
	var b strings.Builder
	s.w.shelve()
	fmt.Fprintf(&b, "job %s, semaphore %d, head %d\n", s.w.state.Job.State, s.w.state.Job.Semaphore, s.w.state.Job.Head.Seq)
	for _, a := range s.flow.Activities() {
		var at []string
		for k, i := range s.w.shelf {
			if k.Activity == a.Name && i != nil && i.Ledger > 0 {
				at = append(at, fmt.Sprintf("%s%s %s\n", k.Activity, k.DAD, i.Ledger))
			}
		}
		slices.Sort(at)
		b.WriteString(strings.Join(at, ""))
	}
	var open []string
	for _, r := range s.w.state.Rows {
		if r != nil {
			open = append(open, fmt.Sprintf("row %s %s turn %d\n", r.Kind, r.Activity, r.Turn))
		}
	}
	for _, x := range s.w.state.Waits {
		if x != nil {
			open = append(open, fmt.Sprintf("wait %s %s %s\n", x.Activity, x.Topic, x.Key))
		}
	}
	slices.Sort(open)
	return b.String() + strings.Join(open, "")
}
