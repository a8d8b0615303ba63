package collation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// TestEffects drives the decisions on the effects of one request by a readable history: what
// was asked, what was decided, and what is left of the row.
//
// Commands: request [held=…] (a fresh row, turn 1, in an open job) · start name run …
// · finish name run [not-done] [result=…] · earlier name [class=…] (begun, and not ended, in
// an earlier generation) · handed-back (the lease ends) · answered
// (the row goes) · turned (the next turn) · parked · closed (the job, with its rows)
// · removed (only a tombstone is left) · exhaust turn=… [runs=…].
//
// A run is holder=… fence=… [turn=…] [ttl=…] [timeout=…] [class=…] [after=…], in minutes.
func TestEffects(t *testing.T) {
	x := &effectScript{}
	datadriven.RunTest(t, "testdata/effects/effects.txt", x.run)
}

type effectScript struct {
	c *collation.Chain
}

func (x *effectScript) run(t *testing.T, d *datadriven.TestData) string {
	row := func() *collation.Row { return x.c.Row }
	switch d.Cmd {
	case "request":
		x.c = &collation.Chain{
			Job:     collation.Job{ID: journal.JobID{1}, Space: "s", Generation: 1, State: journal.JobOpen},
			Request: journal.GUID{2},
			Row: &collation.Row{
				GUID: journal.GUID{
					2,
				},
				Job:      journal.JobID{1},
				Kind:     journal.MessageRequest,
				Activity: "work",
				Request:  collation.Request{Turn: 1, Attempt: 1},
				NextAt:   minute,
			},
			Effects: map[journal.Digest]*collation.Effect{},
		}
	case "handed-back":
		row().Holder, row().Session, row().NextAt = "", 0, 9*minute
	case "earlier":
		f := collation.Effect{EffectRow: collation.EffectRow{
			Name: d.CmdArgs[0].Key, Class: arg(t, d, "class", collation.ClassGuarded), State: collation.EffectStarted,
		}}
		copy(f.Key[:], f.Name)
		x.c.Past = map[journal.Digest]*collation.PastEffect{f.Key: {Effect: f, Generation: 1}}
	case "answered":
		x.c.Row = nil
	case "turned":
		row().Turn++
		row().Holder, row().Session, row().NextAt = "", 0, 9*minute
	case "parked":
		row().Turn++
		row().Held, row().Dead, row().NextAt, row().Holder, row().Session = collation.HeldParked, true,
			collation.Never, "", 0
	case "closed":
		x.c.Job.State, x.c.Row = journal.JobFailed, nil
	case "removed":
		x.c.Job.State, x.c.Row = journal.JobExpired, nil
	case "exhaust":
		return x.exhaust(t, d)
	default:
		return x.write(t, d)
	}
	return rowText(x.c.Row)
}

const minute = collation.Micros(60_000_000)

// write starts or finishes an effect.
func (x *effectScript) write(t *testing.T, d *datadriven.TestData) string {
	l := collation.Lease{
		Job: x.c.Job.ID, Request: x.c.Request, Turn: arg(t, d, "turn", 1), Session: 7, Fresh: d.HasArg("fresh"),
		Holder: arg(t, d, "holder", ""), Fence: int64(arg(t, d, "fence", 0)), Timeout: time.Duration(arg(t, d, "timeout", 0)) * time.Minute,
	}
	e := journal.Effect{Name: d.CmdArgs[0].Key, Class: arg(t, d, "class", collation.ClassGuarded)}
	copy(e.Key[:], e.Name)
	copy(l.After[:], arg(t, d, "after", ""))
	before := fmt.Sprintf("%+v %+v %+v", x.c.Row, x.c.Head, x.c.Effects)
	var out collation.Effected
	var err error
	if d.Cmd == "start" {
		out, err = x.c.Start(l, e, collation.Mode{InFlight: 30 * minute})
	} else {
		e.Result = []byte(arg(t, d, "result", ""))
		out, err = x.c.Finish(l, e, d.HasArg("not-done"), collation.Mode{})
	}
	if err != nil || out.Plan == nil {
		require.Equal(t, before, fmt.Sprintf("%+v %+v %+v", x.c.Row, x.c.Head, x.c.Effects), "nothing is changed")
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return x.describe(t, &out)
}

// describe prints the decision, and the state of the row and chain.
func (x *effectScript) describe(t *testing.T, out *collation.Effected) string {
	var b strings.Builder
	f := &out.EffectRow
	fmt.Fprintf(&b, "%s %s by %s, fence %d", f.Name, f.State, f.Holder, f.Fence)
	b.WriteString(also(f.Live, ", live", out.Taken, ", taken over", out.Plan == nil, ", nothing written", len(f.Result) > 0, ", result "+string(f.Result)) + "\n")
	if out.Plan == nil {
		return b.String()
	}
	w := out.Plan.Chain
	require.Equal(t, w.Effect.EffectRow, *f)
	if w.Effect.Until != collation.Never {
		fmt.Fprintf(&b, "its call may be under way till minute %d\n", w.Effect.Until/minute)
	}
	if e := w.Entry; e != nil {
		fmt.Fprintf(&b, "entry %d %s", e.Seq, e.Kind)
		if e.Effect.Late {
			b.WriteString(", late")
		}
		for i := range e.Updated {
			fmt.Fprintf(&b, ", the row goes on in turn %d", e.Updated[i].Turn)
		}
		b.WriteString("\n")
		require.Equal(t, journal.Encode(e), w.Body)
		require.Equal(t, journal.Head{Seq: e.Seq, Hash: w.Hash}, x.c.Head)
	}
	if w.Resolve {
		b.WriteString("its dead letter ends\n")
	}
	if out.Plan.Session != 0 {
		fmt.Fprintf(&b, "only while session %d lasts\n", out.Plan.Session)
	}
	if w.Row != nil {
		require.Equal(t, x.c.Head, w.Row.Effects)
	}
	return b.String() + rowText(x.c.Row)
}

// rowText prints what is left of a row.
func rowText(r *collation.Row) string {
	if r == nil {
		return "no row\n"
	}
	return fmt.Sprintf("row: %s%s %s, turn %d, sent %d, attempt %d, runs %d, fence %d", r.Kind, r.DAD, r.Body, r.Turn, r.TurnSent, r.Attempt, r.Runs, r.Fence) + also(
		r.NextAt != collation.Never, fmt.Sprintf(", due at %ds", r.NextAt/1e6),
		r.Held != "", ", held "+r.Held, r.Dead, ", dead", r.Holder != "", ", with "+r.Holder, r.Session != 0, fmt.Sprintf(" of session %d", r.Session),
		r.WithinAt != collation.Never, fmt.Sprintf(", within %ds", r.WithinAt/1e6), r.Input != nil, ", input "+string(r.Input), r.Undo, ", has compensations",
	) + "\n"
}

// also joins the texts behind a condition that holds.
func also(pairs ...any) (out string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].(bool) {
			out += pairs[i+1].(string)
		}
	}
	return out
}

// exhaust holds a request that ran too often.
func (x *effectScript) exhaust(t *testing.T, d *datadriven.TestData) string {
	turn, row := arg(t, d, "turn", 1), *x.c.Row
	row.Runs = arg(t, d, "runs", collation.MaxRuns)
	s := &collation.State{
		Job: x.c.Job, Rows: map[journal.GUID]*collation.Row{row.GUID: &row},
		Instances: map[collation.InstanceKey]*collation.Instance{},
	}
	p, need, err := collation.Exhaust(s, row.GUID, turn, collation.Mode{})
	if err != nil {
		return err.Error() + "\n"
	}
	require.Nil(t, p)
	require.Equal(t, []collation.InstanceKey{{Activity: "work"}}, need.Instances)
	s.Instances[need.Instances[0]] = &collation.Instance{Ledger: 1_100_000_000_000}
	p, need, err = collation.Exhaust(s, row.GUID, turn, collation.Mode{})
	require.NoError(t, err)
	require.Nil(t, need)
	letter := &p.Dead[0]
	require.Equal(t, journal.Trouble{Reason: letter.Reason, Message: letter.Message}, *p.Entry.Trouble)
	require.Equal(t, []journal.Updated{{
		GUID: row.GUID, Kind: row.Kind, Turn: 1, Attempt: 1, NextAt: int64(row.NextAt),
		Held: collation.HeldStuck,
	}}, p.Entry.Updated)
	x.c.Row = &p.Update[0]
	return fmt.Sprintf("entry %d %s\nletter %s at %s: %s\n%s", p.Entry.Seq, p.Entry.Kind, letter.Reason, letter.Ledger, letter.Message, rowText(x.c.Row))
}
