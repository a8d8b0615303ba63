package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/view"
)

// Limits of a job's page; what is more is counted.
const (
	maxReasons    = 20
	maxActivities = 100
	maxLedgers    = 40
	maxMessages   = 100
	maxEvents     = 200
	maxRows       = 100
	maxEffects    = 50
	maxLetters    = 50
)

// jobPage is one job (O8), as it stands or as it stood at an entry.
type jobPage struct {
	Job         *view.Job
	Entry, Last int64  // the entry that it is shown at, and the last one
	Past        *past  // nil: it is shown as it stands
	Only        string // the activity that is selected
	Query       string // that events are searched for
	Tab         string // the tab that is open

	Graph       *graph
	Timeline    *timeline
	Reasons     list[view.Reason]
	Letters     list[view.DeadLetter]
	Activities  list[view.Activity]
	Ledgers     list[view.Activity]
	Messages    list[view.Message]
	Effects     list[view.Effect]
	Open        list[view.Message]
	Waits       list[view.Wait]
	Children    []view.Child
	Events      list[view.Event]
	Output      *view.Value
	Trace       string // address of its trace, "" for none
	Report      *replay.Report
	VerifyError error

	keys   map[journal.JobID]string // of other jobs
	places map[journal.GUID]int     // of messages, in the list of all that fit
	whole  map[*view.Value]told
	taken  int // of the room for values
}

// job shows one job. An address may have its key in the place of its id: it leads to that of the id.
func (c *console) job(ctx context.Context, r *http.Request) (*page, error) {
	id, err := journal.ParseJobID(r.PathValue("id"))
	if err != nil {
		return c.byKey(ctx, r, r.PathValue("id"))
	}
	q := r.URL.Query()
	at, err := number("at", q.Get("at"))
	if err != nil {
		return nil, err
	}
	from, err := number("from", q.Get("from"))
	if err != nil {
		return nil, err
	}
	open, err := tabOf(q.Get("tab"))
	if err != nil {
		return nil, err
	}
	job, err := c.read(ctx, id, at, q)
	if err != nil {
		return nil, err
	}
	p := &jobPage{
		Job: job, Only: q.Get("activity"), Query: q.Get("q"), Tab: open, Entry: job.Entries, Last: job.Entries,
	}
	if job.HistoryLeft {
		p.Tab = tabOpen // which the tables have
	}
	if job.At != nil {
		p.Entry, p.Last, p.Past = job.At.Entry, job.At.Of, pastOf(job)
	}
	p.Graph = graphOf(c.reader.Definition(ctx, job.Flow, job.Version), job.Graph)
	p.Timeline = timelineOf(job, time.Now().Truncate(time.Microsecond))
	p.parts()
	p.open()
	p.events(int(from))
	p.messages(int(from))
	p.wholes()
	if err := c.others(ctx, p); err != nil {
		return nil, err
	}
	if q.Get("verify") != "" {
		p.Report, p.VerifyError = c.reader.Verify(ctx, id, c.cfg.Build)
	}
	still := p.Past != nil || p.Report != nil || job.State.Closed() && job.Ended
	return &page{Template: "job", Part: q.Get("part") != "", Title: job.Key, Section: "jobs", Still: still, Data: p}, nil
}

// byKey leads to the page of the job that has a key.
func (c *console) byKey(ctx context.Context, r *http.Request, key string) (*page, error) {
	id, err := c.reader.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	to := url.URL{Path: jobPath(id), RawQuery: r.URL.RawQuery}
	return &page{Redirect: to.RequestURI()}, nil
}

// lost says that there is no such page; a key with slashes may have been meant.
func (c *console) lost(ctx context.Context, r *http.Request) (*page, error) {
	if key, is := strings.CutPrefix(r.URL.Path, "/jobs/"); is && key != "" {
		return c.byKey(ctx, r, key)
	}
	return nil, refusal{http.StatusNotFound, "There is no such page", fmt.Sprintf("The console has no page %.200s", r.URL.Path)}
}

// read reads a job: one that is looked at first, and has a long journal, without it. Whoever asks for a
// part of the history, or follows the page, gets all of it.
func (c *console) read(ctx context.Context, id journal.JobID, at int64, q url.Values) (*view.Job, error) {
	want := inspect.Want{
		Want: view.Want{
			At: at, Graph: true, Effects: true, Journal: true, Events: true, Messages: q.Get("tab") == tabMessages,
			Reasons: true,
		},
		Quick: ctx.Value(followed{}) == nil, Lenient: true,
		Hidden: !access.Of(ctx).Payloads, // a search does not find them either (O11)
	}
	for _, part := range []string{"history", "activity", "q", "tab", "from", "verify"} {
		want.Quick = want.Quick && q.Get(part) == ""
	}
	return c.reader.Job(ctx, id, want)
}

func number(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, bad("%s %.40q: use a number", name, text)
	}
	return n, nil
}

// list is as much of a list as a page shows.
type list[T any] struct {
	Shown []*T
	More  int // behind these
	Next  int // the number of the first of them, from 0; 0: there is none
	From  int // of the first that is shown
}

// some are at most so many of a list, from one of them on.
func some[T any](all []*T, from, most int) list[T] {
	from = min(from, len(all))
	l := list[T]{Shown: all[from:], From: from}
	if l.More = len(l.Shown) - most; l.More > 0 {
		l.Shown, l.Next = l.Shown[:most], from+most
	}
	l.More = max(l.More, 0)
	return l
}

// which are those of a list that fit.
func which[T any](all []T, fits func(*T) bool) []*T {
	var out []*T
	for i := range all {
		if fits(&all[i]) {
			out = append(out, &all[i])
		}
	}
	return out
}

// chosen says that things of the activity are shown.
func (p *jobPage) chosen(activity string) bool { return p.Only == "" || activity == p.Only }

// parts chooses what is shown of the lists of the job.
func (p *jobPage) parts() {
	j := p.Job
	letters := which(j.DeadLetters, func(*view.DeadLetter) bool { return true })
	slices.SortStableFunc(letters, func(a, b *view.DeadLetter) int { return cmp.Compare(order(a), order(b)) })
	p.Letters = some(letters, 0, maxLetters)
	p.Reasons = some(which(j.Reasons, func(*view.Reason) bool { return true }), 0, maxReasons)
	if j.HistoryLeft {
		return
	}
	activities := which(j.Activities, func(a *view.Activity) bool { return p.chosen(a.Activity) && a.Last != "" })
	slices.SortStableFunc(activities, inspect.ByUrgency)
	p.Activities = some(activities, 0, maxActivities)
	ledgers := which(j.Activities, func(a *view.Activity) bool { return p.chosen(a.Activity) && a.Ledger != 0 })
	slices.SortStableFunc(ledgers, func(a, b *view.Activity) int {
		return cmp.Or(inspect.ByUrgency(a, b), cmp.Compare(a.Activity, b.Activity), cmp.Compare(a.Address, b.Address))
	})
	p.Ledgers = some(ledgers, 0, maxLedgers)
	effects := which(j.Effects, func(f *view.Effect) bool { return p.chosen(f.Activity) })
	slices.SortStableFunc(effects, func(a, b *view.Effect) int { return cmp.Compare(doubt(a), doubt(b)) })
	p.Effects = some(effects, 0, maxEffects)
}

// order puts what waits for a decision before what has ended.
func order(d *view.DeadLetter) int {
	if d.State == quipu.LetterOpen {
		return 0
	}
	return 1
}

// doubt puts an effect whose outcome is not known first, and then those that failed.
func doubt(f *view.Effect) int {
	switch {
	case f.State != view.EffectCompleted:
		return 0
	case f.Error != nil:
		return 1
	}
	return 2
}

// open chooses the open messages and waits: what waits for a person first, then what a worker has, then
// what was sent.
func (p *jobPage) open() {
	rows := which(p.Job.Messages, func(m *view.Message) bool { return m.Open && p.chosen(m.Activity) })
	slices.SortStableFunc(rows, func(a, b *view.Message) int { return cmp.Compare(urgency(a), urgency(b)) })
	p.Open = some(rows, 0, maxRows)
	p.Waits = some(which(p.Job.Waits, func(w *view.Wait) bool { return p.chosen(w.Activity) }), 0, maxRows)
}

// MoreOpen is how many open messages and waits are not shown.
func (p *jobPage) MoreOpen() int { return p.Open.More + p.Waits.More }

// urgency is what of a message a person would see first.
func urgency(m *view.Message) int {
	switch {
	case m.Held == view.HeldParked, m.Held == view.HeldStuck:
		return 0
	case m.Holder != "":
		return 1
	case m.Out:
		return 2
	case m.Held == "":
		return 3
	}
	return 4 // an element that waits for its turn
}

// events chooses those that fit the search, from one of them on.
func (p *jobPage) events(from int) {
	if p.Tab != tabJournal {
		from = 0
	}
	p.Events = some(which(p.Job.Events, func(ev *view.Event) bool {
		return p.chosen(ev.Activity) && fits(ev, p.Query)
	}), from, maxEvents)
}

// fits reports an event with the text in its words, its activity, its values or its error.
func fits(ev *view.Event, text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	in := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	value := func(v *view.Value) bool { return v != nil && in(string(v.JSON)) }
	return in(ev.Activity) || in(string(ev.Kind)) || in(ev.Text) || value(ev.Input) || value(ev.Output) ||
		ev.Error != nil && (in(ev.Error.Message) || in(ev.Error.Class)) || text == strconv.FormatInt(ev.Entry, 10)
}

// others looks up other jobs: the children, and the keys of all that the page names.
func (c *console) others(ctx context.Context, p *jobPage) error {
	j := p.Job
	p.Trace = strings.ReplaceAll(c.cfg.Trace, "{trace}", spans.Of(j.ID, j.Trace).Trace.String())
	seen := map[journal.JobID]bool{}
	add := func(x view.Child) {
		if !x.ID.IsZero() && !seen[x.ID] && len(p.Children) < maxRows {
			seen[x.ID], p.Children = true, append(p.Children, x)
		}
	}
	for i := range j.Children {
		add(j.Children[i])
	}
	for i := range j.Activities {
		add(view.Child{ID: j.Activities[i].Child, Activity: j.Activities[i].Activity})
	}
	var ids []journal.JobID
	for i := range p.Children {
		ids = append(ids, p.Children[i].ID)
	}
	for _, ev := range p.Events.Shown {
		ids = append(ids, ev.Job)
	}
	for _, m := range p.Messages.Shown {
		ids = append(ids, m.ToJob)
	}
	if j.Parent != nil {
		ids = append(ids, j.Parent.ID)
	}
	outcomes, _ := below.Of(c.rt).Outcomes(ctx, ids) // without it they have their ids
	p.keys = make(map[journal.JobID]string, len(outcomes))
	for id, o := range outcomes {
		p.keys[id] = o.Key
	}
	for i := range p.Children {
		p.Children[i].State = outcomes[p.Children[i].ID].State
	}
	if p.Past != nil {
		return nil
	}
	return c.started(ctx, p, seen)
}

// badStates are those of jobs that somebody has to look at.
var badStates = []journal.JobState{journal.JobFailed, journal.JobQuarantined, journal.JobInterrupted}

// started adds the newest jobs that the job started, and of more of them those that failed.
func (c *console) started(ctx context.Context, p *jobPage, seen map[journal.JobID]bool) error {
	for _, f := range []quipu.JobFilter{{}, {States: badStates}} {
		if f.Parent, f.Limit = p.Job.ID, maxRows; f.States != nil && len(p.Children) < maxRows {
			break
		}
		all, err := c.rt.Jobs(ctx, f)
		if err != nil {
			return err
		}
		for i := range all.Jobs {
			x := &all.Jobs[i]
			if p.keys[x.ID] = x.Key; !seen[x.ID] {
				seen[x.ID], p.Children = true, append(p.Children, view.Child{ID: x.ID, State: x.State})
			}
		}
	}
	slices.SortStableFunc(p.Children, func(a, b view.Child) int { return cmp.Compare(trouble(&a), trouble(&b)) })
	return nil
}

// Key is the key of another job, or its id if the job is not there.
func (p *jobPage) Key(id journal.JobID) string { return cmp.Or(p.keys[id], id.String()) }
