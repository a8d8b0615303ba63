package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/view"
)

// past is what a page says of an entry.
type past struct {
	What []string // that it tells
	Open []due    // what was to be done then
}

// due is something that was to be done.
type due struct {
	What, Activity, Topic string
	Attempt               int
	Held                  view.Held
	Since                 int64 // entry
}

// pastOf says of a job at an entry what happened then, and what was to be done, the oldest first.
func pastOf(j *view.Job) *past {
	p := &past{}
	closed := int64(0)
	for i := range j.Events {
		ev := &j.Events[i]
		if !ev.Chain.IsZero() {
			continue
		}
		if ev.Entry == j.At.Entry {
			p.What = append(p.What, strings.TrimSpace(placed(ev.Activity, ev.Element, ev.Pass)+" "+ev.Text))
		}
		if ev.Kind == view.KindClosed {
			closed = ev.Entry
		}
	}
	for i := range j.Messages {
		if m := &j.Messages[i]; m.Open {
			p.Open = append(p.Open, due{string(m.Kind), m.Activity, m.Topic, m.Attempt, m.Held, m.Since})
		}
	}
	for i := range j.Waits {
		w := &j.Waits[i]
		p.Open = append(p.Open, due{What: "wait", Activity: w.Activity, Topic: w.Topic, Since: w.SinceEntry})
	}
	for i := range j.Children {
		x := &j.Children[i]
		p.Open = append(p.Open, due{What: "child", Activity: x.Activity, Attempt: x.Attempt, Since: x.SinceEntry})
	}
	slices.SortStableFunc(p.Open, func(a, b due) int { return cmp.Compare(a.Since, b.Since) })
	if j.State.Closed() && !j.Ended {
		p.Open = slices.Insert(p.Open, 0, due{What: "tasks", Since: closed})
	}
	p.Open = p.Open[:min(len(p.Open), maxRows)]
	return p
}
