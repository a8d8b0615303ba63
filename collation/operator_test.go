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

// TestOperator drives a held request by a readable history: what an operator decided on its
// dead letter, or that its time has passed, and what is left of it.
//
// Commands, times in minutes: request [kind=…] [held=…] [reason=…] [undo] [holder=…
// until=…] [within=…] (a row that is held, in an open job, with its open dead letter; the
// time is 10) · effect name [class=…] [state=…] [result=…] · job state=… · gone (the
// row) · hold (the row, again) · accepted (an answer, with steps left) · nobody (no job) · letter
// state=… · act retry|done=…|answer=…|fail=… [effect=…] · overdue · judge [reason=…] [effect=…]
// (what a retry and a done mean, of the effects in its input: name class state
// [vouched|result|error]).
func TestOperator(t *testing.T) {
	for _, name := range []string{"operator", "judge"} {
		datadriven.RunTest(t, "testdata/operator/"+name+".txt", (&operatorScript{}).run)
	}
}

type operatorScript struct {
	s      *collation.State
	letter *collation.Letter
	record []collation.EffectRow
	// receipt is that of the request's answer in its turn.
	receipt *collation.Receipt
	more    int // loads
}

func (x *operatorScript) run(t *testing.T, d *datadriven.TestData) string {
	request := journal.GUID{2}
	switch d.Cmd {
	case "request":
		x.begin(t, d)
	case "effect":
		f := collation.EffectRow{
			Name: d.CmdArgs[0].Key, Class: arg(t, d, "class", collation.ClassGuarded),
			State: collation.EffectState(arg(t, d, "state", "started")), Fence: 3, Holder: "w",
		}
		copy(f.Key[:], f.Name)
		if result := arg(t, d, "result", ""); result != "" {
			f.Result = []byte(result)
		}
		x.record = append(x.record, f)
		return ""
	case "job":
		x.s.Job.State = journal.JobState(arg(t, d, "state", ""))
	case "gone":
		x.s.Rows[request] = nil
	case "hold":
		x.s.Rows[request].Held, x.s.Rows[request].Dead = collation.HeldStuck, true
	case "accepted":
		x.receipt = &collation.Receipt{Ledger: 1, Verdict: journal.VerdictHandled, Seq: 7}
	case "nobody":
		x.s = nil
		return ""
	case "letter":
		d.ScanArgs(t, "state", &x.letter.State)
	case "act":
		return x.act(t, d)
	case "judge":
		return judge(t, d)
	case "overdue":
		p := collation.Overdue(x.s, request, collation.Mode{Writer: "suite"})
		if p == nil {
			return "nothing\n"
		}
		x.s.Apply(p)
		u := p.Entry.Updated[0]
		return fmt.Sprintf("entry %d %s: %s turn %d attempt %d held %q\n", p.Entry.Seq, p.Entry.Kind, u.Kind, u.Turn, u.Attempt, u.Held) + x.stands()
	}
	return x.stands()
}

// judge says what is meant.
func judge(t *testing.T, d *datadriven.TestData) (out string) {
	var all []collation.EffectRow
	for line := range strings.Lines(d.Input) {
		w := append(strings.Fields(line), "")
		f := collation.EffectRow{Name: w[0], Class: w[1], State: collation.EffectState(w[2]), Vouched: w[3] == "vouched"}
		copy(f.Key[:], f.Name)
		switch w[3] {
		case "result":
			f.Result = []byte(`1`)
		case "error":
			f.Error = &journal.Failure{}
		}
		all = append(all, f)
	}
	for _, a := range []collation.Action{{Retry: true}, {Done: []byte(`null`)}} {
		copy(a.Effect[:], arg(t, d, "effect", ""))
		decision, about, err := a.Judge(arg(t, d, "reason", collation.HeldParked), all)
		says := "leaves the effects"
		switch {
		case err != nil:
			require.ErrorIs(t, err, collation.ErrRejected)
			says = err.Error()
		case about != nil:
			require.Contains(t, all, *about)
			says = fmt.Sprintf("%s: %s", about.Name, decision)
		}
		out += a.Name() + ": " + says + "\n"
	}
	return out
}

// begin holds a request with its dead letter.
func (x *operatorScript) begin(t *testing.T, d *datadriven.TestData) {
	row := &collation.Row{
		GUID: journal.GUID{
			2,
		},
		Job:      journal.JobID{1},
		Kind:     journal.MessageKind(arg(t, d, "kind", "request")),
		Activity: "work",
		DAD:      ",0",
		Request: collation.Request{
			Turn:     2,
			TurnSent: 2,
			Attempt:  1,
			Runs:     5,
			Fence:    3,
			Effects:  journal.Head{Seq: 4},
			Holder:   arg(t, d, "holder", ""),
			WithinAt: collation.Micros(arg(t, d, "within", 0)) * minute,
		},
		Body: []byte(`"input"`),
		Held: arg(t, d, "held", collation.HeldParked),
		Dead: true,
		Undo: d.HasArg("undo"),
	}
	if row.Held == "no" {
		row.Held, row.Dead, row.NextAt = "", false, 60*minute
	}
	if row.Holder != "" {
		row.Session = 7
	}
	x.s = &collation.State{
		Job: collation.Job{
			ID: journal.JobID{1}, Space: "s", Generation: 1, State: journal.JobOpen, Head: journal.Head{Seq: 7},
		},
		Now: 10 * minute, Rows: map[journal.GUID]*collation.Row{row.GUID: row},
	}
	x.letter = &collation.Letter{
		ID: 9, Job: row.Job, Row: row.GUID, Reason: arg(t, d, "reason", collation.HeldParked), State: collation.LetterOpen,
	}
	x.record, x.receipt, x.more = nil, nil, 0
}

func (x *operatorScript) act(t *testing.T, d *datadriven.TestData) string {
	a := collation.Action{ID: 9, Retry: d.HasArg("retry"), Who: "ann", Reason: "looked it up"}
	if done := arg(t, d, "done", ""); done != "" {
		a.Done = []byte(done)
	}
	if answer := arg(t, d, "answer", ""); answer != "" {
		a.Response = &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(answer)}
	}
	if fail := arg(t, d, "fail", ""); fail != "" {
		a.Response = &journal.Response{
			Kind: journal.ResponseTerminal, Code: 500, Error: &journal.Failure{Class: "operator", Message: fail},
		}
	}
	copy(a.Effect[:], arg(t, d, "effect", ""))
	require.NoError(t, a.Check())
	before := fmt.Sprintf("%+v %+v", x.s, *x.letter)
	p, need, err := collation.Act(x.s, x.letter, &a, collation.Mode{Writer: "suite"})
	if need != nil {
		require.Equal(t, before, fmt.Sprintf("%+v %+v", x.s, *x.letter), "nothing is changed")
		if answer := collation.ResponseGUID(journal.GUID{2}, 2); len(need.Receipts) > 0 {
			require.Equal(t, []journal.GUID{answer}, need.Receipts)
			x.s.Receipts = map[journal.GUID]*collation.Receipt{answer: x.receipt}
		} else {
			require.Equal(t, []journal.GUID{{2}}, need.Record)
			x.s.Record = map[journal.GUID][]collation.EffectRow{{2}: x.record}
		}
		before = fmt.Sprintf("%+v %+v", x.s, *x.letter)
		p, need, err = collation.Act(x.s, x.letter, &a, collation.Mode{Writer: "suite"})
		require.Nil(t, need)
	}
	if err != nil {
		require.Equal(t, before, fmt.Sprintf("%+v %+v", x.s, *x.letter), "nothing is changed")
		return err.Error() + "\n"
	}
	require.Equal(t, []collation.LetterEnd{{ID: 9, State: x.letter.State}}, p.Letters)
	if x.s == nil {
		require.Nil(t, p.Entry)
		return "letter " + x.letter.State + "\n"
	}
	x.s.Apply(p)
	x.s.Job.Head.Seq = p.Entry.Seq
	return x.describe(t, p) + x.stands()
}

// describe prints what was written, and the row.
func (x *operatorScript) describe(t *testing.T, p *collation.Plan) string {
	var b strings.Builder
	e := p.Entry
	require.Equal(t, journal.Operator{Action: e.Operator.Action, Who: "ann", Reason: "looked it up"}, *e.Operator)
	require.Equal(t, "suite", x.s.Author.Writer)
	fmt.Fprintf(&b, "letter %s\nentry %d %s %s", x.letter.State, e.Seq, e.Kind, e.Operator.Action)
	if e.Effect != nil {
		require.Nil(t, e.Effect.Result)
		fmt.Fprintf(&b, " about %s", e.Effect.Name)
	}
	b.WriteString("\n")
	w := p.Chain
	if w == nil {
		return b.String()
	}
	require.Nil(t, w.Row, "the plan has it")
	f := &w.Effect
	fmt.Fprintf(&b, "effect %s %s, fence %d", f.Name, f.State, f.Fence)
	b.WriteString(also(w.Completed, ", completed before", f.Vouched, ", vouched for", f.Result != nil, ", result "+string(f.Result)))
	if f.Error != nil {
		fmt.Fprintf(&b, ", error %s", f.Error.Class)
	}
	b.WriteString("\n")
	if w.Entry != nil {
		require.Equal(t, []any{f.Result, f.Error}, []any{w.Entry.Effect.Result, w.Entry.Effect.Error})
		require.Equal(t, journal.Head{Seq: w.Entry.Seq, Hash: w.Hash}, p.Update[0].Effects)
		fmt.Fprintf(&b, "entry %d of the request %s\n", w.Entry.Seq, w.Entry.Kind)
	}
	return b.String()
}

// stands prints what is left of the row.
func (x *operatorScript) stands() string { return rowText(x.s.Rows[journal.GUID{2}]) }
