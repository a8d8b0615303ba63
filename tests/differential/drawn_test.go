package differential

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// drawn counts what the plans of the sequences contained.
type drawn map[string]int

// enough is how many sequences have to draw everything that they should.
const enough = 300

// plan counts the parts of a plan that are not empty.
func (d drawn) plan(p *collation.Plan) {
	d["outcome "+string(p.Outcome)]++
	d.fields("plan", reflect.ValueOf(*p))
	for i := range p.Ledgers {
		d.fields("ledger", reflect.ValueOf(p.Ledgers[i]))
	}
	if p.Receipt != nil {
		d.fields("receipt", reflect.ValueOf(*p.Receipt))
	}
	if p.Entry != nil {
		d["entry "+string(p.Entry.Kind)]++
	}
	for _, rows := range [][]collation.Row{p.Insert, p.Update} {
		for i := range rows {
			d["row "+string(rows[i].Kind)]++
			d["held "+rows[i].Held]++
			d.fields("row", reflect.ValueOf(rows[i]))
		}
	}
	for i := range p.Dead {
		d["letter "+p.Dead[i].Reason]++
	}
	for i := range p.Waits {
		d.fields("wait", reflect.ValueOf(p.Waits[i]))
	}
	d["state "+string(p.NewState)]++
}

func (d drawn) fields(of string, v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous {
			d.fields(of, v.Field(i))
		} else if !v.Field(i).IsZero() {
			d[of+"."+f.Name]++
		}
	}
}

// expected is what plans of the engine contain.
func expected() []string {
	var out []string
	for name, v := range map[string]any{
		"plan": collation.Plan{}, "ledger": collation.LedgerWrite{}, "receipt": collation.ReceiptWrite{},
		"row": collation.Row{}, "wait": collation.Wait{},
	} {
		all := drawn{}
		fill(all, name, reflect.TypeOf(v))
		out = append(out, sorted(all)...)
	}
	for _, k := range []journal.Kind{
		journal.KindLeg1, journal.KindLeg2, journal.KindStale, journal.KindInterrupt, journal.KindDeadLetter, journal.KindQuarantine,
	} {
		out = append(out, "entry "+string(k))
	}
	for _, k := range []journal.MessageKind{
		journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle,
		journal.MessageStart, journal.MessageSignal, journal.MessageInterrupt,
	} {
		out = append(out, "row "+string(k))
	}
	for _, o := range []collation.Outcome{
		collation.Handled, collation.Stale, collation.Settled, collation.Unlicensed, collation.HeldBack, collation.Stuck, collation.Quarantined,
	} {
		out = append(out, "outcome "+string(o))
	}
	for _, s := range []journal.JobState{journal.JobCompleted, journal.JobFailed, journal.JobInterrupted, journal.JobQuarantined} {
		out = append(out, "state "+string(s))
	}
	out = slices.DeleteFunc(out, func(name string) bool { return name == "wait.Count" || name == "row.Input" }) // deliveries and stores write them
	return append(out, "held "+collation.HeldStuck, "held "+collation.HeldParked, "held "+collation.HeldParallel)
}

func fill(d drawn, of string, t reflect.Type) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			fill(d, of, f.Type)
		} else {
			d[of+"."+f.Name]++
		}
	}
}

// report says what no sequence has drawn; where there were enough, it fails.
func (d drawn) report(t *testing.T) {
	t.Helper()
	var never []string
	for _, name := range expected() {
		if d[name] == 0 {
			never = append(never, name)
		}
	}
	if n, err := strconv.Atoi(os.Getenv(sequences)); err == nil && n >= enough && len(never) > 0 {
		t.Errorf("not drawn in %d sequences: %v", n, never)
		return
	}
	t.Logf("not drawn: %v", never)
}
