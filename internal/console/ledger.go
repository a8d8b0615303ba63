package console

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/journal"
)

// maxStrips bounds the ledgers on a page.
const maxStrips = 40

// digits is a group of digits of a ledger (1.2), what it means, and the entry that set it. One
// entry is one transaction.
type digits struct {
	Text, Means string
	Set         bool
	Seq         int64
	At          time.Time
	Writer      string
}

// strip is the ledger of one instance.
type strip struct {
	Activity, Address string
	Pass              int
	Groups            []digits
}

// parts are the groups of a ledger: its text is cut at these places.
var parts = []struct {
	from, to int
	means    func(l collation.ActivityLedger) string
}{
	{0, 1, func(l collation.ActivityLedger) string {
		return [...]string{"state: active", "state: trigger", "state: finalized"}[min(l.State(), 2)]
	}},
	{1, 3, func(l collation.ActivityLedger) string { return "Leg1 entries: " + fmt.Sprint(l.Leg1Entries()) }},
	{3, 4, func(l collation.ActivityLedger) string {
		if l.Leg1Complete() {
			return "Leg1 complete"
		}
		return "Leg1 not complete"
	}},
	{4, 5, func(l collation.ActivityLedger) string {
		if l.JoinTaken() {
			return "join: an arrival was taken"
		}
		return "join: none taken"
	}},
	{5, 7, func(l collation.ActivityLedger) string { return "arrivals: " + fmt.Sprint(l.Arrivals()) }},
	{7, 15, func(l collation.ActivityLedger) string {
		return "Leg2 messages accepted: " + fmt.Sprint(l.Leg2Entries())
	}},
}

// stripsOf gives the ledgers of a job, each group of digits with the entry that set it. left
// counts those beyond the limit; only, if not "", is the one activity that is shown.
func stripsOf(r *look.Reading, only string) (strips []strip, left int) {
	set := settersOf(r.Entries)
	for i := range r.Job.View.Instances {
		in := &r.Job.View.Instances[i]
		if in.Ledger == 0 || only != "" && in.Key.Activity != only {
			continue
		}
		if len(strips) == maxStrips {
			left++
			continue
		}
		s := strip{Activity: in.Key.Activity, Address: string(in.Key.DAD), Pass: in.Key.DAD.Pass()}
		text := in.Ledger.String()
		for n, p := range parts {
			g := digits{Text: text[p.from:p.to], Means: p.means(in.Ledger)}
			if e := set[setter{in.Key, n}]; e != nil {
				g.Set, g.Seq, g.At, g.Writer = true, e.Seq, time.UnixMicro(e.Time), r.Writer(e)
			}
			s.Groups = append(s.Groups, g)
		}
		strips = append(strips, s)
	}
	return strips, left
}

// setter names a group of digits of a ledger.
type setter struct {
	collation.InstanceKey
	part int
}

// settersOf finds the entry that last changed each group of digits.
func settersOf(entries []*journal.Entry) map[setter]*journal.Entry {
	set := map[setter]*journal.Entry{}
	before := map[collation.InstanceKey]string{}
	for _, e := range entries {
		for _, m := range e.Moves() {
			key := collation.InstanceKey{Activity: m.Activity, DAD: collation.DAD(m.DAD)}
			text := m.After.String()
			for n, p := range parts {
				if old := before[key]; old == "" && text[p.from:p.to] != "00000000"[:p.to-p.from] ||
					old != "" && old[p.from:p.to] != text[p.from:p.to] {
					set[setter{key, n}] = e
				}
			}
			before[key] = text
		}
	}
	return set
}

// effect is one effect of a job with the entries that are its evidence.
type effect struct {
	Key, Name, Class, State string
	Activity, Address       string
	Element                 int
	Turn, NotDone           int
	Result                  *history.Value
	Error                   *journal.Failure
	Entries                 []evidence
}

// evidence is an entry that tells of an effect.
type evidence struct {
	Kind   string
	Seq    int64
	At     time.Time
	Writer string
	Late   bool
	Act    *journal.Operator
}

// effectsOf gathers the effects of a job from the chains of its requests, and what operators said
// of them. left counts those beyond the limit; only, if not "", is the one activity whose effects
// are shown.
func effectsOf(r *look.Reading, only string) (all []*effect, left int) {
	at := map[journal.Digest]*effect{}
	elements, outputs := map[journal.GUID]int{}, map[told]*history.Value{}
	activities := map[journal.GUID]string{}
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Kind == history.KindEffect {
			elements[ev.Chain], activities[ev.Chain], outputs[told{ev.Chain, ev.Seq, 0}] = ev.Element, ev.Activity,
				ev.Output
		}
	}
	more := map[journal.Digest]bool{}
	var said []*journal.Entry
	for _, e := range r.Entries {
		switch {
		case e.Effect == nil:
			continue
		case e.Chain.IsZero():
			said = append(said, e)
			continue
		case only != "" && activities[e.Chain] != only, more[e.Effect.Key]:
			continue
		}
		f := at[e.Effect.Key]
		if f == nil && len(all) == maxEffects {
			more[e.Effect.Key] = true
			continue
		} else if f == nil {
			f = &effect{
				Key: e.Effect.Key.String(), Name: e.Effect.Name, Activity: e.Activity, Address: e.DAD, Element: -1,
			}
			if n, known := elements[e.Chain]; known {
				f.Element = n
			}
			at[e.Effect.Key], all = f, append(all, f)
		}
		f.take(e, outputs[told{e.Chain, e.Seq, 0}], r.Writer(e))
	}
	for _, e := range said {
		if f := at[e.Effect.Key]; f != nil {
			f.Entries = append(f.Entries,
				evidence{string(e.Kind), e.Seq, time.UnixMicro(e.Time), r.Writer(e), e.Effect.Late, e.Operator})
		}
	}
	return all, len(more)
}

func (f *effect) take(e *journal.Entry, output *history.Value, writer string) {
	if f.Activity == "" { // a late entry does not name the instance
		f.Activity, f.Address = e.Activity, e.DAD
	}
	if e.Effect.Class != "" {
		f.Class = e.Effect.Class
	}
	f.Turn, f.NotDone = e.Effect.Turn, e.Effect.N
	switch e.Kind {
	case journal.KindEffectStarted:
		f.State = "started"
	case journal.KindEffectCompleted:
		f.State, f.Result, f.Error = "completed", output, e.Effect.Error
	case journal.KindEffectFailed:
		f.State, f.Error = "not done", e.Effect.Error
	}
	f.Entries = append(f.Entries,
		evidence{string(e.Kind), e.Seq, time.UnixMicro(e.Time), writer, e.Effect.Late, e.Operator})
}
