package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/schedule"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/view"
)

// processesPage lists the living processes, and what is wrong with the space.
type processesPage struct {
	Processes []quipu.Process
	Wrong     []health.Finding
}

// processes lists the living processes.
func (c *console) processes(ctx context.Context, _ *http.Request) (*page, error) {
	p := &processesPage{}
	var err error
	if p.Processes, err = c.rt.Processes(ctx); err != nil {
		return nil, err
	}
	for i := range p.Processes {
		p.Processes[i].Seen = time.Time{} // it changes with every look, and says nothing: all of them live
	}
	gauges, err := below.Of(c.rt).Gauges(ctx)
	if err != nil {
		return nil, err
	}
	topics, err := c.rt.Topics(ctx)
	if err != nil {
		return nil, err
	}
	p.Wrong, err = c.reader.Wrong(ctx, &health.Sight{Gauges: gauges, Topics: seen(topics)})
	if err != nil {
		return nil, err
	}
	for i := range p.Wrong {
		p.Wrong[i].For = p.Wrong[i].For.Truncate(time.Minute)
	}
	return &page{Template: "processes", Title: "Processes", Section: "processes", Data: p}, nil
}

// seen are topics as health judges them.
func seen(all []quipu.Topic) []health.Topic {
	out := make([]health.Topic, len(all))
	for i := range all {
		t := &all[i]
		out[i] = health.Topic{Name: t.Name, Queued: t.Queued, Oldest: t.Oldest, Served: t.Served(), Longest: t.Longest}
	}
	return out
}

// topic is one topic of a space, with the flows that send to it.
type topic struct {
	quipu.Topic
	Flows []string // active ones
	Dead  int      // open dead letters
}

// topicsPage lists the topics that active flows send to, that processes serve, or that have
// requests (O9).
type topicsPage struct {
	Topics []*topic
	Nobody int  // topics that flows send to and nobody serves
	Blind  bool // the queues cannot be read here
	Early  bool // of one of them runs may begin before their causes have committed
}

func (c *console) topics(ctx context.Context, _ *http.Request) (*page, error) {
	known, err := c.rt.Topics(ctx)
	if err != nil {
		return nil, err
	}
	p := &topicsPage{Blind: slices.ContainsFunc(known, func(t quipu.Topic) bool {
		return t.Queued == quipu.QueueUnknown
	})}
	all := map[string]*topic{}
	for _, t := range known {
		// what changes with every look says nothing
		t.Oldest, t.Longest = t.Oldest.Truncate(time.Second), t.Longest.Truncate(time.Minute)
		all[t.Name] = &topic{Topic: t}
		p.Early = p.Early || t.Early != nil
	}
	of := func(name string) *topic {
		if all[name] == nil {
			all[name] = &topic{Topic: quipu.Topic{Name: name}}
		}
		return all[name]
	}
	if err := c.senders(ctx, of); err != nil {
		return nil, err
	}
	letters, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Limit: store.MaxPage})
	if err != nil {
		return nil, err
	}
	for i := range letters {
		if letters[i].Topic != "" {
			of(letters[i].Topic).Dead++
		}
	}
	for _, t := range all {
		p.Topics = append(p.Topics, t)
		if !t.Served() {
			p.Nobody++
		}
	}
	slices.SortFunc(p.Topics, func(a, b *topic) int {
		return cmp.Or(unserved(a, b), cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Name, b.Name))
	})
	return &page{Template: "topics", Title: "Topics", Section: "topics", Data: p}, nil
}

// unserved compares topics so that those that nobody serves come first.
func unserved(a, b *topic) int {
	switch {
	case a.Served() == b.Served():
		return 0
	case b.Served():
		return -1
	}
	return 1
}

// senders notes which active flows send to which topics.
func (c *console) senders(ctx context.Context, of func(string) *topic) error {
	active, err := below.Of(c.rt).Schedules(ctx) // the active versions
	if err != nil {
		return err
	}
	for i := range active {
		f := c.reader.Definition(ctx, active[i].Ref.Name, active[i].Ref.Version)
		if f == nil {
			continue
		}
		for _, a := range f.Activities() {
			if a.Type != flow.TypeWorker {
				continue
			}
			if t := of(a.Topic); !slices.Contains(t.Flows, f.Name()) {
				t.Flows = append(t.Flows, f.Name())
			}
		}
	}
	return nil
}

// scheduled is a flow that the clock starts.
type scheduled struct {
	Flow, Version, Cron, Zone, CatchUp string
	Last                               time.Time // up to when its jobs were started
	Next                               []time.Time
	Fault                              string
}

// nextTimes is how many of its next times a schedule shows.
const nextTimes = 5

// schedules lists the flows that the clock starts.
func (c *console) schedules(ctx context.Context, _ *http.Request) (*page, error) {
	active, err := below.Of(c.rt).Schedules(ctx)
	if err != nil {
		return nil, err
	}
	var all []scheduled
	for i := range active {
		f := c.reader.Definition(ctx, active[i].Ref.Name, active[i].Ref.Version)
		if f == nil || f.Schedule() == nil {
			continue
		}
		in := f.Schedule()
		s := scheduled{
			Flow: f.Name(), Version: f.Version(), Cron: in.Cron, Zone: in.Zone, CatchUp: string(in.CatchUp),
			Last: instant(active[i].Last),
		}
		if spec, err := schedule.Parse(in.Cron, in.Zone); err != nil {
			s.Fault = err.Error()
		} else {
			for at := spec.Next(instant(active[i].Now)); !at.IsZero() && len(s.Next) < nextTimes; at = spec.Next(at) {
				s.Next = append(s.Next, at)
			}
		}
		s.Last = s.Last.Truncate(time.Minute) // it moves with every look
		all = append(all, s)
	}
	return &page{Template: "schedules", Title: "Schedules", Section: "schedules", Data: all}, nil
}

// deadPage are the dead letters, in groups by reason and topic (O9).
type deadPage struct {
	Groups              []group
	Letters             []view.DeadLetter
	Flow, Topic, Reason string
	All, Chosen         bool
	Next                int64 // the last letter of the page if there may be more; 0: there are none
	Cut                 bool  // the groups do not count all
}

// group are the open dead letters of one reason and topic.
type group struct {
	Reason view.LetterReason
	Topic  string
	N      int
	Oldest time.Time
}

// dead lists dead letters. The groups count the newest of the open ones, as many as one page of
// the store has.
func (c *console) dead(ctx context.Context, r *http.Request) (*page, error) {
	q := r.URL.Query()
	before, err := number("before", q.Get("before"))
	if err != nil {
		return nil, err
	}
	p := &deadPage{Flow: q.Get("flow"), Topic: q.Get("topic"), Reason: q.Get("reason"), All: q.Get("all") != ""}
	p.Chosen = p.Flow != "" || p.Topic != "" || p.Reason != ""
	open, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Limit: store.MaxPage})
	if err != nil {
		return nil, err
	}
	p.Cut = len(open) == store.MaxPage
	for i := range open {
		d := &open[i]
		at := slices.IndexFunc(p.Groups, func(g group) bool { return g.Reason == d.Reason && g.Topic == d.Topic })
		if at < 0 {
			at, p.Groups = len(p.Groups), append(p.Groups, group{Reason: d.Reason, Topic: d.Topic})
		}
		p.Groups[at].N++
		p.Groups[at].Oldest = d.At // they come newest first
	}
	slices.SortStableFunc(p.Groups, func(a, b group) int { return cmp.Compare(b.N, a.N) })
	p.Letters, err = c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{
		All: p.All, Flow: p.Flow, Topic: p.Topic, Reason: view.LetterReason(p.Reason), Before: before,
		Limit: pageSize,
	})
	if err != nil {
		return nil, err
	}
	if len(p.Letters) == pageSize {
		p.Next = p.Letters[pageSize-1].ID
	}
	return &page{Template: "dead", Title: "Dead letters", Section: "dead", Still: before > 0, Data: p}, nil
}
