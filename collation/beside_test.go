package collation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// same decides once more in the transaction of the commit before, with what was loaded by then.
func (s *script) same() string {
	key := collation.InstanceKey{Activity: s.last.Activity, DAD: s.last.DAD}
	if _, loaded := s.w.state.Results[key]; !loaded {
		s.w.state.Results[key] = s.w.stored(key)
	}
	p := s.w.step(&s.last)
	s.w.commit(p)
	return s.w.describe(p)
}

// beside runs the commands about what happens beside the messages, or to the last one again.
func (s *script) beside(t *testing.T, d *datadriven.TestData) (string, bool) {
	switch d.Cmd {
	case "continue":
		out := ""
		for range arg(t, d, "n", 1) {
			if d.HasArg("same") {
				out = s.same()
			} else {
				out = s.deliver(d.HasArg("once"))
			}
		}
		return out, true
	case "loaded":
		s.w.state.Author = collation.Author{}
		return "", true
	case "hold":
		if len(d.CmdArgs) > 0 && d.CmdArgs[0].Key != "reason" {
			s.last = s.response(t, d)
		}
		p := collation.Hold(s.w.state, &s.last, s.w.mode, arg(t, d, "reason", collation.HeldStuck), errors.New(d.Input))
		s.w.commit(p)
		return s.w.describe(p), true
	}
	activity := d.CmdArgs[0].Key
	switch d.Cmd {
	case "ledger":
		digits, err := journal.ParseLedger(d.CmdArgs[2].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.w.state.Instances[collation.InstanceKey{
			Activity: activity, DAD: collation.DAD(d.CmdArgs[1].Key),
		}] = &collation.Instance{Ledger: collation.ActivityLedger(digits)}
		return "", true
	case "row":
		return s.w.rowsOf(activity), true
	}
	row := *s.w.due(activity, 0)
	switch d.Cmd {
	case "stuck":
		row.Held, row.Dead = collation.HeldStuck, true
	case "recorded":
		row.Effects, s.w.unfinished = journal.Head{Seq: 2, Hash: journal.Digest{1}}, d.HasArg("open")
	case "overdue":
		s.w.state.Now = max(s.w.state.Now, row.WithinAt)
		p := collation.Overdue(s.w.state, row.GUID, s.w.mode)
		if p == nil {
			return "nothing\n", true
		}
		s.w.commit(p)
		s.last = *journaltest.Message(s.w.state.Rows[row.GUID])
		return s.w.describe(p), true
	default:
		return "", false
	}
	s.w.state.Rows[row.GUID] = &row
	return "", true
}

// rowsOf prints the rows of an activity, as the sweeper and a worker see them.
func (w *world) rowsOf(activity string) string {
	var out []string
	for _, r := range w.state.Rows {
		if r == nil || r.Activity != activity {
			continue
		}
		out = append(out, rowText(r))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}
