package collation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// TestMailbox drives the decisions of one mailbox (1.11) by a readable history, at the time 100.
//
// Commands: box [partial] (an empty one, of which not all waits were read) · wait [repeat]
// [count=…] [max-age=…] [since=…] [function] (the n-th is of a job of its own,
// and opened at the time n) ·
// signal name sent=… [code=…] [all] [kept=…] [due] [unreadable] · flood n=… [code=…] [all] (due
// ones, sent at the times 0, 1, …) · deliver name · receive name [code=…] [all] · lapse name
// [earlier] · interrupt name code=… [closed] [known] (of a job).
func TestMailbox(t *testing.T) {
	datadriven.RunTest(t, "testdata/mailbox/mailbox.txt", (&mailScript{}).run)
}

type mailScript struct {
	box   *collation.Box
	job   *collation.State // of interrupts
	names map[journal.GUID]string
}

func (x *mailScript) run(t *testing.T, d *datadriven.TestData) string {
	number := func(name string, n int) int { return arg(t, d, name, n) }
	code := number("code", collation.CodeOK)
	switch d.Cmd {
	case "box":
		x.box = &collation.Box{
			ID: collation.Mailbox("test", "t", "k"), Now: 100, All: !d.HasArg("partial"), Named: map[journal.GUID]*collation.Row{},
		}
		x.names = map[journal.GUID]string{}
		x.job = &collation.State{
			Now: 5, Rows: map[journal.GUID]*collation.Row{}, Receipts: map[journal.GUID]*collation.Receipt{},
		}
	case "wait":
		n := byte(len(x.box.Waits) + 1)
		w := collation.Wait{
			GUID: journal.GUID{n}, Job: journal.JobID{n}, Since: collation.Micros(number("since", int(n))), Topic: "t",
			Repeat: d.HasArg("repeat"),
			Count:  number("count", 0), MaxAge: collation.Micros(number("max-age", 0)),
		}
		if d.HasArg("function") {
			w.Request = journal.GUID{0xaa}
		}
		x.box.Waits, x.names[w.GUID] = append(x.box.Waits, collation.BoxWait{Wait: w, JobKey: fmt.Sprint("job ", n)}),
			fmt.Sprint("wait ", n)
	case "flood":
		for i := range number("n", 0) {
			row := x.row(t, fmt.Sprint("f", i), i, code, d.HasArg("all"))
			x.box.Due = append(x.box.Due, &row)
		}
	case "signal":
		row := x.row(t, d.CmdArgs[0].Key, number("sent", 0), code, d.HasArg("all"))
		if d.HasArg("unreadable") {
			row.Body = []byte("{")
		}
		if keep := number("kept", 0); keep > 0 {
			row = (&collation.Signal{Sent: collation.Micros(number("sent", 0)), Keep: collation.Micros(keep)}).Kept(row)
		}
		if x.box.Named[row.GUID] = &row; d.HasArg("due") {
			x.box.Due = append(x.box.Due, &row)
		}
	default:
		return x.decide(t, d, code)
	}
	return ""
}

func guidOf(name string) (g journal.GUID) {
	copy(g[:], "s"+name)
	return g
}

func (x *mailScript) signal(name string, sent, code int, all bool) collation.Signal {
	g := guidOf(name)
	x.names[g] = name
	return collation.Signal{
		GUID: g, Topic: "t", Key: "k", Code: code, Payload: []byte(`"` + name + `"`), All: all, Sent: collation.Micros(sent),
	}
}

func (x *mailScript) row(t *testing.T, name string, sent, code int, all bool) collation.Row {
	s := x.signal(name, sent, code, all)
	row, err := s.Row("test")
	require.NoError(t, err)
	return row
}

// decide prints a decision, and applies it.
func (x *mailScript) decide(t *testing.T, d *datadriven.TestData, code int) string {
	name := d.CmdArgs[0].Key
	m, need, err := &collation.Mail{}, (*collation.Need)(nil), error(nil)
	switch d.Cmd {
	case "deliver":
		m, need, err = collation.Deliver(x.box, guidOf(name), collation.Mode{})
	case "receive":
		m, need, err = collation.Receive(x.box, "test", x.signal(name, 0, code, d.HasArg("all")), collation.Mode{})
	case "lapse":
		if d.HasArg("earlier") {
			x.box.Now--
			defer func() { x.box.Now++ }()
		}
		m.Plan = collation.Lapse(x.box, guidOf(name))
	case "interrupt":
		row := collation.Row{
			Job: journal.JobID{1}, GUID: guidOf(name), Kind: journal.MessageInterrupt, Body: fmt.Appendf(nil, `{"code":%d}`, code),
		}
		if x.names[row.GUID] = name; d.HasArg("closed") {
			x.job.Job.State = journal.JobCompleted
		}
		m.Plan, err = collation.Interrupt(x.job, row, d.HasArg("known"), d.HasArg("asks"), collation.Mode{Resend: 10})
	}
	switch {
	case err != nil:
		return strings.ReplaceAll(err.Error(), guidOf(name).String(), name) + "\n"
	case need != nil:
		return fmt.Sprintf("read %d more waits\n", need.Further)
	case m == nil || m.Plan == nil:
		return "nothing\n"
	case d.Cmd == "interrupt":
		x.job.Apply(m.Plan)
	default:
		x.box.Apply(m.Plan)
	}
	return x.describe(t, m)
}

// describe prints what is written.
func (x *mailScript) describe(t *testing.T, m *collation.Mail) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if m.State != "" {
		say("%s, reached %d", m.State, m.Reached)
	}
	p := m.Plan
	if len(p.Delete) > 9 {
		say("  - %d others", len(p.Delete))
		p.Delete, p.Signals, p.Insert = nil, nil, nil
	}
	for _, g := range p.Delete {
		say("  - %s", x.names[g])
	}
	for i := range p.Update {
		say("  ~ %s held %q", x.names[p.Update[i].GUID], p.Update[i].Held)
	}
	for _, s := range p.Signals {
		say("  recorded %s %s, new %t", x.names[s.GUID], s.State, s.New)
	}
	for _, w := range p.Taken {
		require.Equal(t, w.Job[0], w.GUID[0])
		say("  %s: count %d → %d, ended %t", x.names[w.GUID], w.Seen, w.Count, w.Ended)
	}
	for i := range p.Insert {
		r := &p.Insert[i]
		if r.Kind != journal.MessageWakeUp {
			say("  + %s %s published %d at %d next %d held %q", r.Kind, x.names[r.GUID], r.Publication, r.PublishedAt, r.NextAt, r.Held)
			continue
		}
		e, err := journal.DecodeResponse(r.Body)
		require.NoError(t, err)
		w := m.ResolvedWaits[i]
		require.Equal(t, []any{w.Job, w.Request}, []any{r.Job, e.Request})
		own := map[journal.GUID]string{w.GUID: "the wait's id", collation.SignalledGUID(w.GUID, e.Signal): "an id of its own"}[r.GUID]
		say("  + wakeup of %s by %s, %s: %s %d number %d output %s error %s", w.JobKey, x.names[e.Signal], own, e.Kind, e.Code, e.Number, e.Output, failureText(e.Error))
		if e.Error != nil {
			say("    data %s", e.Error.Data)
		}
	}
	return b.String()
}
