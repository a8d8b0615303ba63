package replay

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// given is what the definition of the flow gives on the journal (V17): its expressions see the
// results that the entries so far recorded.
type given struct {
	flow  *flow.Flow // nil: nothing is evaluated, see why
	why   string
	build string // that wrote the entry, by what entries say
	job   flow.JobInfo
	// results are what expressions see, by address; last is the latest one of an activity, whatever
	// its address. Outputs that nothing mentions are not kept.
	results   map[collation.InstanceKey]*seen
	last      map[string]*seen
	mentioned map[string]bool
	brought   map[journal.GUID]*brought // responses of messages whose steps are open
}

// seen is a result with the entry that has it. hidden: its output is not in this input.
type seen struct {
	flow.Result
	seq    int64
	hidden bool
}

// brought is a response as its entry recorded it.
type brought struct {
	seen
	element int
	signal  []byte // what `signal` is in the hook's output
}

// begin compiles the definition that the first entry names.
func (g *given) begin(e *journal.Entry, b *Attachments) {
	switch {
	case e.Flow == nil || b.Definition == nil:
		g.why = "the flow's definition is not in this input"
		return
	case journal.Digest(sha256.Sum256(b.Definition)) != e.Flow.Digest:
		g.why = "the definition in this input is not that of the job (V19)"
		return
	}
	x := b.Flows.get(e.Flow.Digest, b.Definition)
	if x.err != nil {
		g.why = fmt.Sprintf("this build does not compile the flow's definition: %v", x.err)
		return
	}
	g.flow = x.flow
	g.job = flow.JobInfo{ID: e.Key, Flow: e.Flow.Name, Version: e.Flow.Version, StartedMicros: e.Time}
	g.results, g.last = make(map[collation.InstanceKey]*seen), make(map[string]*seen)
	g.brought, g.mentioned = make(map[journal.GUID]*brought), x.mentioned
}

// mentions are the activities whose results some expression of the flow sees.
func mentions(f *flow.Flow) map[string]bool {
	all := set(f.OutputNeeds()...)
	for _, act := range f.Activities() {
		lists := [][]string{act.InputNeeds(), act.MapNeeds()}
		for _, t := range act.Out {
			lists = append(lists, t.Needs())
		}
		for _, names := range lists {
			for _, name := range names {
				all[name] = true
			}
		}
	}
	return all
}

// told takes over the results that the entry records, as foldResult does. raw is the result of
// the message's activity before the engine made another one of it; nil: it is not told.
func (a *auditor) told(e *journal.Entry, f *facts) (raw *seen) {
	g := &a.given
	if e.Kind == journal.KindLeg2 && !f.start && e.Response != nil {
		g.brought[e.GUID] = a.brings(e)
	}
	open := a.job.ClosedAt == 0
	answered := f.kind == journal.ResponseTerminal || f.kind == journal.ResponsePass
	if x := g.brought[e.GUID]; x != nil && f.marks.has(work) && answered && open {
		g.record(f.resultKey(&Receipt{Element: x.element}), &x.seen)
	}
	raw = g.results[f.at]
	switch {
	case e.Kind == journal.KindCreated:
		g.record(f.key, &seen{Result: *resultOf(e), seq: e.Seq})
	case e.Result != nil && open, failedExpression(e) && (f.decides || f.minus):
		g.record(f.at, &seen{Result: *resultOf(e), seq: e.Seq})
	}
	return raw
}

// brings reads a response with its output, which may stand beside the entry (E6).
func (a *auditor) brings(e *journal.Entry) *brought {
	r := e.Response
	x := &brought{
		seen:    seen{Result: *broughtBy(r), seq: e.Seq},
		element: r.Element,
	}
	if !r.Ref.IsZero() {
		p := a.attachments.Payloads[r.Ref]
		x.Output, x.hidden = p.Body, p.Body == nil || p.Sum != r.Ref
	}
	if r.By == journal.BySignal {
		code := codeOK
		if r.Kind == journal.ResponsePass {
			code = codePass
		}
		payload := x.Output
		if payload == nil {
			payload = []byte("null")
		}
		x.signal = fmt.Appendf(nil, `{"code":%d,"id":%q,"payload":%s}`, code, r.Signal, payload)
	}
	return x
}

func (g *given) record(key collation.InstanceKey, x *seen) {
	g.results[key] = x
	if l := g.last[key.Activity]; l == nil || l.seq <= x.seq {
		g.last[key.Activity] = x
	}
}

// forget drops what no later entry needs of a message that has decided.
func (g *given) forget(e *journal.Entry, f *facts) {
	if !f.marks.has(children) {
		return
	}
	delete(g.brought, e.GUID)
	if x := g.results[f.at]; x != nil && !g.mentioned[f.at.Activity] {
		kept := *x
		kept.Output = nil
		g.results[f.at] = &kept
		if g.last[f.at.Activity] == x {
			g.last[f.at.Activity] = &kept
		}
	}
}

// view is what the expressions of one activity see (1.9). reader nil is the flow's output.
type view struct {
	g      *given
	reader *flow.Activity
	dad    collation.DAD
	own    *seen // the activity's own result, in the pass at dad
	hidden bool  // an expression saw a result whose output is not here
	budget *flow.Budget
}

// budget bounds what one Leg1, one set of transitions or one output may cost, as it did when the
// engine evaluated them. There is no time net: what is violated does not depend on how fast this
// machine is.
func budget() *flow.Budget { return flow.NewBudget(nil) }

// Budget implements flow.Scope.
func (v *view) Budget() *flow.Budget { return v.budget }

// Job implements flow.Scope.
func (v *view) Job() flow.JobInfo { return v.g.job }

// Result implements flow.Scope.
func (v *view) Result(name string) (flow.Result, bool) {
	act, known := v.g.flow.Activity(name)
	if !known {
		return flow.Result{}, false
	}
	key := collation.InstanceKey{Activity: name, DAD: addressOf(act, v.reader, v.dad)}
	x := v.g.results[key]
	switch {
	case v.reader == nil && passes(act):
		x = v.g.last[name]
	case v.own != nil && v.reader != nil && key == (collation.InstanceKey{Activity: v.reader.Name, DAD: v.dad}):
		x = v.own
	}
	if x == nil {
		return flow.Result{}, true
	}
	v.hidden = v.hidden || x.hidden
	return x.Result, true
}

// passes reports whether an activity may run at several addresses.
func passes(act *flow.Activity) bool {
	for ; act != nil; act = act.Parent {
		if act.Passes() {
			return true
		}
	}
	return false
}

// gives reports that an entry says otherwise than the definition gives. If another build wrote
// the entry, it may have evaluated otherwise: then it is not proved.
func (a *auditor) gives(e *journal.Entry, v *view, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	ours := ""
	if a.attachments.Flows != nil {
		ours = a.attachments.Flows.build
	}
	switch {
	case v != nil && v.hidden:
		a.note(V17, fmt.Sprintf("entry %d: an output that its expressions see is not in this input", e.Seq))
	case a.given.build != ours:
		a.note(V17, fmt.Sprintf("entry %d: %s: build %s wrote the entry, this is build %s", e.Seq, what,
			cmp.Or(a.given.build, "(unknown)"), cmp.Or(ours, "(unknown)")))
	default:
		a.at(V17, e, "%s", what)
	}
}
