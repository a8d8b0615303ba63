package collation_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// suspension answers the open request of a function. The input names what the function waits
// for, one per line: sleep NAME MS · signal NAME TOPIC KEY MS · child NAME FLOW INPUT.
func (s *script) suspension(t *testing.T, d *datadriven.TestData) collation.Message {
	row := s.w.due(d.CmdArgs[0].Key, arg(t, d, "element", 0))
	if row == nil {
		t.Fatalf("nobody asked %s", d.CmdArgs[0].Key)
	}
	r := &journal.Response{Kind: journal.ResponseSuspended, Code: 200}
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		w := strings.SplitN(line, " ", 5)
		p := journal.Pause{PauseRef: journal.PauseRef{Kind: journal.PauseKind(w[0]), Name: w[1], Position: "1"}}
		ms := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return n * 1000
		}
		switch p.Kind {
		case journal.PauseSleep:
			p.For = ms(w[2])
		case journal.PauseSignal:
			p.Topic, p.Key, p.For = w[2], w[3], ms(w[4])
		case journal.PauseChild:
			p.Flow, p.Input = w[2], []byte(w[3])
		}
		r.Pauses = append(r.Pauses, p)
	}
	return *journaltest.Response(row, r)
}

// wake delivers a function's timer by name: a sleep, or the timeout of a signal.
func (s *script) wake(t *testing.T, d *datadriven.TestData) collation.Message {
	request := s.w.due(d.CmdArgs[0].Key, 0)
	name := d.CmdArgs[2].Key
	var row *collation.Row
	for _, p := range request.Pauses {
		switch {
		case p.Name != name:
		case d.CmdArgs[1].Key == "timeout" && p.Kind == journal.PauseSignal:
			row = s.w.state.Rows[collation.TimeoutGUID(p.GUID)]
		case string(p.Kind) == d.CmdArgs[1].Key:
			row = s.w.state.Rows[p.GUID]
		}
	}
	if row == nil {
		t.Fatalf("no %s %s of %s", d.CmdArgs[1].Key, name, d.CmdArgs[0].Key)
	}
	return *journaltest.Message(row)
}

// describeFunction prints what a plan did to a durable function.
func describeFunction(b *strings.Builder, p *collation.Plan) {
	r := p.Entry.Response
	if r != nil && r.Kind == journal.ResponseSuspended {
		for _, x := range r.Pauses {
			fmt.Fprintf(b, "  waits for %s %s\n", x.Kind, x.Name)
		}
	}
	if w := p.ResolvedWait; w != nil {
		fmt.Fprintf(b, "  resolved: %s %s, entry %d\n", w.Kind, w.Name, w.Seq)
	}
	for i := range p.Update {
		for _, x := range p.Update[i].Pauses {
			state := "armed"
			switch {
			case x.Came:
				state = "came"
			case x.Taken:
				state = "taken"
			}
			fmt.Fprintf(b, "  pause %s %s %s\n", x.Kind, x.Name, state)
		}
	}
}

// hasUndo marks the row of a request whose function registered compensations.
func (s *script) hasUndo(t *testing.T, d *datadriven.TestData) string {
	row := s.w.due(d.CmdArgs[0].Key, 0)
	if row == nil {
		t.Fatalf("nobody asked %s", d.CmdArgs[0].Key)
	}
	next := *row
	next.Undo = true
	s.w.state.Rows[row.GUID] = &next
	return ""
}
