package console

import (
	"bytes"
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
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/telemetry/trace"
)

// Limits of a job's page; what is more is counted.
const (
	maxReasons    = 20
	maxActivities = 100
	maxEvents     = 200
	maxRows       = 100
	maxEffects    = 50
	maxLetters    = 50
)

// jobPage is one job (O8), as it stands or as it stood at an entry.
type jobPage struct {
	V            *store.JobView
	Job          quipu.Job
	Started      time.Time
	Closed       time.Time
	Took         time.Duration
	Expires      time.Time
	Input        *history.Value
	Output       *history.Value
	Reasons      []reason
	MoreReasons  int
	Past         bool
	At, Head     int64
	AtTime       time.Time
	AtWhat       []string
	Open         []replay.Open
	Graph        *graph
	Timeline     *timeline
	Only         string // the activity that is selected
	Activities   []history.Activity
	MoreActs     int
	Strips       []strip
	MoreStrips   int
	Effects      []*effect
	MoreEffects  int
	Events       []event
	MoreEvents   int
	FirstEvent   int
	NextEvents   int // the first of the next page, 0 for none
	Query        string
	Silent       error
	Later        bool // its journal is not read yet
	Letters      []quipu.DeadLetter
	MoreLetters  int
	Rows         []openRow
	Waits        []collation.Wait
	MoreRows     int // of both
	Children     []child
	Parent       *quipu.Parent
	ParentKey    string
	Resumes      journal.JobID
	ForkOf       journal.JobID
	ResumedBy    journal.JobID
	Trace        string // address of its trace, "" for none
	Report       *replay.Report
	VerifyFailed error

	whole map[*history.Value]told
	taken int // of the room for values
}

// reason is one sentence about a job, with the commands that the terminal has for it.
type reason struct {
	explain.Reason
	Due time.Time
}

// event is an event with the key of the other job that it is about.
type event struct {
	history.Event
	Key string
}

// child is a job that this one started.
type child struct {
	ID       journal.JobID
	Key      string
	Activity string
	State    string
}

// job shows one job.
func (c *console) job(ctx context.Context, r *http.Request) (*view, error) {
	id, err := journal.ParseJobID(r.PathValue("id"))
	if err != nil {
		return nil, bad("%v; the address of a job has its id, and the field above finds it by its key", err)
	}
	q := r.URL.Query()
	at, err := number("at", q.Get("at"))
	if err != nil {
		return nil, err
	}
	read, err := c.reading(ctx, id, at, q)
	if err != nil {
		return nil, err
	}
	payloads := access.Of(ctx).Payloads
	if !payloads {
		hide(read)
	}
	p := &jobPage{Only: q.Get("activity"), Query: q.Get("q")}
	p.head(read)
	c.names(ctx, p)
	p.state(read)
	if err := c.current(ctx, p, read); err != nil {
		return nil, err
	}
	if !payloads {
		for _, f := range p.Effects {
			f.Result, f.Error = nil, hidden(f.Error)
		}
	}
	from, err := number("from", q.Get("from"))
	if err != nil {
		return nil, err
	}
	p.journal(ctx, c, read, int(from))
	if q.Get("verify") != "" {
		p.Report, p.VerifyFailed = look.Verify(ctx, c.rt, id, c.cfg.Build)
	}
	still := p.Past || p.Report != nil || p.V.State.Closed() && p.V.Ended
	return &view{Template: "job", Part: q.Get("part") != "", Title: p.Job.Key, Section: "jobs", Still: still, Data: p}, nil
}

// reading reads a job: one that is looked at first, and has a long journal, without it. Whoever
// asks for a part of the history, or follows the page, gets all of it.
func (c *console) reading(ctx context.Context, id journal.JobID, at int64, q url.Values) (*look.Reading, error) {
	for _, part := range []string{"history", "activity", "q", "from", "at", "verify"} {
		if q.Get(part) != "" {
			return c.shelf.Read(ctx, c.rt, id, at)
		}
	}
	if ctx.Value(followed{}) != nil {
		return c.shelf.Read(ctx, c.rt, id, at)
	}
	return c.shelf.Glance(ctx, c.rt, id)
}

// hide takes the payloads away before anything is made of them, so that a search does not find
// them either (O11).
func hide(r *look.Reading) {
	gone := &history.Value{Missing: "not shown to a viewer"}
	v := r.Job.View
	v.Output, v.Error = nil, hidden(v.Error)
	r.Events = slices.Clone(r.Events) // others may see them
	for i := range r.Events {
		ev := &r.Events[i]
		if ev.Input != nil {
			ev.Input = gone
		}
		if ev.Output != nil {
			ev.Output = gone
		}
		ev.Error = hidden(ev.Error)
	}
}

// hidden is an error without its data and its stack.
func hidden(f *journal.Failure) *journal.Failure {
	if f == nil {
		return nil
	}
	return &journal.Failure{Class: f.Class, Message: f.Message}
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

// head fills what the job's row says.
func (p *jobPage) head(r *look.Reading) {
	v := r.Job.View
	p.V, p.Job, p.Head, p.Silent, p.Later = v, quipu.Job{ID: v.ID, Key: v.Key}, r.Head, r.Silent, r.Later
	p.Started, p.Closed, p.Expires = instant(v.Started), instant(v.Closed), instant(v.ExpiresAt)
	until := r.Job.Now
	if v.State.Closed() && v.Closed != collation.Never {
		until = v.Closed
	}
	p.Took = time.Duration(until-v.Started) * time.Microsecond
	p.At = p.Head
	if r.At != nil {
		p.Past, p.At, p.AtTime, p.Open = true, r.At.Seq, time.UnixMicro(r.At.Time), r.Open
		for i := range r.Events {
			if ev := &r.Events[i]; ev.Chain.IsZero() && ev.Seq == r.At.Seq {
				p.AtWhat = append(p.AtWhat, strings.TrimSpace(placed(ev)+" "+ev.Text))
			}
		}
	}
	if v.Parent != nil {
		p.Parent = &quipu.Parent{Job: quipu.Job{ID: v.Parent.Job}, Activity: v.Parent.Activity, Address: v.Parent.DAD}
	}
	if v.From != nil && v.From.Forks() {
		p.ForkOf = v.From.Job
	} else if v.From != nil {
		p.Resumes = v.From.Job
	}
	p.ResumedBy = v.Next
}

func instant(t collation.Micros) time.Time {
	if t == collation.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}

// names looks up the keys of other jobs, and the address of the trace.
func (c *console) names(ctx context.Context, p *jobPage) {
	if p.Parent != nil {
		p.ParentKey = c.keyOf(ctx, p.Parent.Job.ID)
	}
	seen := map[journal.JobID]bool{}
	var ids []journal.JobID
	for i := range p.V.Instances {
		in := &p.V.Instances[i]
		if in.Child.IsZero() || seen[in.Child] || len(p.Children) == maxRows {
			continue
		}
		seen[in.Child], ids = true, append(ids, in.Child)
		p.Children = append(p.Children, child{in.Child, in.Child.String(), in.Key.Activity, "awaited"})
	}
	outcomes, _ := below.Of(c.rt).Outcomes(ctx, ids) // without it they have their ids
	for i := range p.Children {
		if o, known := outcomes[p.Children[i].ID]; known {
			p.Children[i].Key, p.Children[i].State = o.Key, string(o.State)
		}
	}
	p.Trace = strings.ReplaceAll(c.cfg.Trace, "{trace}", trace.Of(p.V.ID, p.V.Trace).Trace.String())
}

// state fills the parts that show how far the job is.
func (p *jobPage) state(r *look.Reading) {
	p.Graph = graphOf(explain.Survey(r.Job))
	p.Timeline = timelineOf(r)
	if !r.Later {
		p.Strips, p.MoreStrips = stripsOf(r, p.Only)
	}
	p.Effects, p.MoreEffects = effectsOf(r, p.Only)
	p.open()
	if p.Past {
		if len(p.Open) > maxRows {
			p.Open = p.Open[:maxRows]
		}
	} else {
		for _, x := range explain.Why(r.Job) {
			if len(p.Reasons) == maxReasons {
				p.MoreReasons++
				continue
			}
			p.Reasons = append(p.Reasons, reason{x, instant(x.Due)})
		}
	}
	p.Activities, p.MoreActs = history.Some(r.Events, p.Only, maxActivities)
}

// openRow is an open message, with its place, and whether it is out: then it is due for nothing
// but another look.
type openRow struct {
	*collation.Row
	Name string
	Sent bool
}

// open fills the open messages and waits, of the activity that is selected: what waits for a person
// first, then what a worker has, then what was sent.
func (p *jobPage) open() {
	lists := map[collation.InstanceKey]bool{}
	for i := range p.V.Instances {
		lists[p.V.Instances[i].Key] = p.V.Instances[i].Count > 0
	}
	for i := range p.V.Rows {
		row := &p.V.Rows[i]
		if p.Only != "" && row.Activity != p.Only {
			continue
		}
		x := openRow{row, row.Activity, row.Publication > 0 && row.TurnSent == row.Turn && row.Held == ""}
		if row.Kind == journal.MessageRequest && lists[collation.InstanceKey{Activity: row.Activity, DAD: row.DAD}] {
			x.Name += fmt.Sprintf("[%d]", row.Element)
		}
		p.Rows = append(p.Rows, x)
	}
	slices.SortStableFunc(p.Rows, func(a, b openRow) int { return cmp.Compare(a.urgency(), b.urgency()) })
	if len(p.Rows) > maxRows {
		p.Rows, p.MoreRows = p.Rows[:maxRows], len(p.Rows)-maxRows
	}
	for i := range p.V.Waits {
		if w := &p.V.Waits[i]; p.Only != "" && w.Activity != p.Only {
			continue
		} else if len(p.Waits) < maxRows {
			p.Waits = append(p.Waits, *w)
		} else {
			p.MoreRows++
		}
	}
}

// urgency is what of a message a person would see first.
func (x openRow) urgency() int {
	switch {
	case x.Held == collation.HeldParked, x.Held == collation.HeldStuck:
		return 0
	case x.Holder != "":
		return 1
	case x.Sent:
		return 2
	case x.Held == "":
		return 3
	}
	return 4 // an element that waits for its turn
}

// current adds what stands beside the journal: dead letters, children, the outcome of effects.
func (c *console) current(ctx context.Context, p *jobPage, r *look.Reading) error {
	dead := slices.Clone(p.V.Dead) // the open ones first
	slices.SortStableFunc(dead, func(a, b store.DeadView) int { return cmp.Compare(order(&a), order(&b)) })
	for i := range dead {
		d := &dead[i]
		if len(p.Letters) == maxLetters {
			p.MoreLetters++
			continue
		}
		p.Letters = append(p.Letters, quipu.DeadLetter{
			ID: d.ID, Job: p.Job, Flow: d.Flow, Topic: d.Topic, Kind: d.Letter.Kind, Activity: d.Letter.Activity,
			Address: string(d.Letter.DAD),
			Reason:  quipu.DeadLetterReason(d.Letter.Reason), Message: d.Letter.Message, At: instant(d.At),
			State: quipu.DeadLetterState(d.State),
		})
	}
	if p.Past {
		return nil
	}
	outcome := map[string]*store.JobEffect{}
	for i := range r.Effects {
		outcome[r.Effects[i].Key.String()] = &r.Effects[i]
	}
	for _, f := range p.Effects {
		if x := outcome[f.Key]; x != nil {
			f.State, f.Class, f.Error = strings.ReplaceAll(string(x.State), "_", " "), x.Class, x.Error
			if f.Result == nil && x.Result != nil {
				f.Result = &history.Value{JSON: x.Result}
			}
		}
	}
	page, err := c.rt.Jobs(ctx, quipu.JobFilter{Parent: p.V.ID, Limit: maxRows})
	if err != nil {
		return err
	}
	for i := range page.Jobs {
		j := &page.Jobs[i]
		at := slices.IndexFunc(p.Children, func(x child) bool { return x.ID == j.Job.ID })
		if at < 0 {
			p.Children = append(p.Children, child{j.Job.ID, j.Job.Key, "", string(j.State)})
		} else {
			p.Children[at].State = string(j.State)
		}
	}
	return nil
}

// order puts what waits for a decision before what has ended.
func order(d *store.DeadView) int {
	if d.State == collation.LetterOpen {
		return 0
	}
	return 1
}

// journal fills the events that fit the search.
func (p *jobPage) journal(ctx context.Context, c *console, r *look.Reading, from int) {
	p.FirstEvent, p.whole = from, wholes(r.Events)
	if p.V.Output != nil {
		p.Output = &history.Value{JSON: p.V.Output}
	}
	keys := map[journal.JobID]string{}
	n := 0
	for i := range r.Events {
		ev := &r.Events[i]
		if ev.Kind == history.KindStarted && p.Input == nil {
			p.Input = ev.Input
		}
		if ev.Output != nil && p.Output != nil && ev.Activity == "" && bytes.Equal(ev.Output.JSON, p.V.Output) {
			p.Output = ev.Output // which has a page of its own
		}
		if p.Only != "" && ev.Activity != p.Only || !fits(ev, p.Query) {
			continue
		}
		n++
		switch {
		case n <= from:
		case len(p.Events) == maxEvents:
			p.MoreEvents++
			p.NextEvents = from + maxEvents
		default:
			x := event{Event: *ev}
			if !ev.Job.IsZero() {
				key, known := keys[ev.Job]
				if !known {
					key = c.keyOf(ctx, ev.Job)
					keys[ev.Job] = key
				}
				x.Key = key
			}
			p.Events = append(p.Events, x)
		}
	}
}

// fits reports an event with the text in its words, its activity, its values or its error.
func fits(ev *history.Event, text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	in := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	value := func(v *history.Value) bool { return v != nil && in(string(v.JSON)) }
	return in(ev.Activity) || in(string(ev.Kind)) || in(ev.Text) || value(ev.Input) || value(ev.Output) ||
		ev.Error != nil && (in(ev.Error.Message) || in(ev.Error.Class)) || text == strconv.FormatInt(ev.Seq, 10)
}
