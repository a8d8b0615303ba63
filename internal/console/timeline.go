package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Limits of a timeline.
const (
	maxBars   = 500 // more are folded: one lane for each activity, with counts
	maxLanes  = 200
	maxFailed = 20  // lanes with a failure that are not folded
	buckets   = 100 // of a folded lane
)

// Sizes of a timeline, in its own units.
const (
	laneName   = 130
	laneWidth  = 370
	laneHeight = 22
	axisHeight = 24
)

// bar is a part of a lane: what an attempt, or a wait, took.
type bar struct {
	Class string // ran, waited, backoff, person, failed; with open while it lasts
	From  time.Time
	To    time.Time
	Text  string

	X, Y, W float64
	N       int // of what is folded in it; 0: nothing is

	of *view.Event // that it tells of; nil: it has its Text
}

// above is 1 for a bar that stands over the others and is wide enough to be seen: that of a failure.
func (b *bar) above() int {
	if b.Class == "failed" {
		return 1
	}
	return 0
}

// lane is the line of one activity, or of one element of its list.
type lane struct {
	Name, Activity string
	Bars           []bar
	Y              int

	of *view.Event // that it is named for; nil: it has its Name
}

// tick is a mark of the axis.
type tick struct {
	X    float64
	Text string
}

// timeline is the picture of when a job did what (O8).
type timeline struct {
	Lanes         []lane
	Ticks         []tick
	Width, Height int
	Bars          int // before they were folded
	Folded        bool
	Left          int // lanes that are not drawn
	From, To      time.Time
}

// timelineOf draws the events of a job. Messages that a worker holds are running.
func timelineOf(j *view.Job, now time.Time) *timeline {
	if len(j.Events) == 0 {
		return nil
	}
	t := &timeline{From: j.Events[0].Time, To: now, Width: laneName + laneWidth + margin*2}
	if !j.Closed.IsZero() {
		t.To = j.Closed
	}
	if last := j.Events[len(j.Events)-1].Time; last.After(t.To) || j.At != nil {
		t.To = last
	}
	if !t.To.After(t.From) {
		t.To = t.From.Add(time.Microsecond)
	}
	at := map[laneKey]int{}
	for i := range j.Events {
		ev := &j.Events[i]
		if ev.Activity == "" || ev.Kind == view.KindEffect {
			continue
		}
		key := keyOf(ev.Activity, ev.Address, ev.Element)
		n, known := at[key]
		if !known {
			n = len(t.Lanes)
			at[key] = n
			t.Lanes = append(t.Lanes, lane{of: ev, Activity: ev.Activity})
		}
		t.add(&t.Lanes[n], ev)
	}
	t.unfinished(j, at)
	t.Lanes = slices.DeleteFunc(t.Lanes, func(l lane) bool { return len(l.Bars) == 0 })
	for i := range t.Lanes {
		t.Bars += len(t.Lanes[i].Bars)
	}
	slices.SortStableFunc(t.Lanes, func(a, b lane) int { return cmp.Compare(a.trouble(), b.trouble()) })
	if t.Bars > maxBars {
		t.fold()
	}
	t.place()
	return t
}

// trouble puts lanes that ended with a failure first, then those that wait for a person or are tried again.
func (l *lane) trouble() int {
	rank := 2
	for i := range l.Bars {
		switch b := &l.Bars[i]; {
		case b.Class == "failed" && b.of.Kind == view.KindFailed:
			return 0
		case b.Class == "person open", b.Class == "failed":
			rank = 1
		}
	}
	return rank
}

type laneKey struct {
	activity, address string
	element           int // -1: none
}

func keyOf(activity, address string, element *int) laneKey {
	if element == nil {
		return laneKey{activity, address, -1}
	}
	return laneKey{activity, address, *element}
}

// placed names an activity with its element and pass.
func placed(activity string, element *int, pass int) string {
	if element != nil {
		activity += fmt.Sprintf("[%d]", *element)
	}
	if pass > 1 {
		activity += fmt.Sprintf(" · pass %d", pass)
	}
	return activity
}

// add adds what an event ended: a wait, then a run; and the backoff that follows a failed attempt.
func (t *timeline) add(l *lane, ev *view.Event) {
	began := ev.Time.Add(-time.Duration(ev.Ran))
	if ev.Waited > 0 {
		class := "waited"
		if ev.Kind == view.KindOperator {
			class = "person"
		}
		l.Bars = append(l.Bars, bar{Class: class, From: began.Add(-time.Duration(ev.Waited)), To: began, of: ev})
	}
	if ev.Ran > 0 || ev.Kind == view.KindDone || ev.Kind == view.KindFailed || ev.Kind == view.KindAttempt {
		class := "ran"
		if ev.Kind == view.KindFailed || ev.Kind == view.KindAttempt {
			class = "failed"
		}
		l.Bars = append(l.Bars, bar{Class: class, From: began, To: ev.Time, of: ev})
	}
	if ev.Kind == view.KindAttempt && ev.Due.After(ev.Time) {
		to := ev.Due
		if to.After(t.To) {
			to = t.To
		}
		l.Bars = append(l.Bars, bar{Class: "backoff", From: ev.Time, To: to, of: ev})
	}
}

// says is the text of a bar that tells of an event.
func (b *bar) says() string {
	attempt := ""
	if b.of.Attempt > 0 {
		attempt = fmt.Sprintf(", attempt %d", b.of.Attempt)
	}
	switch b.Class {
	case "backoff":
		return "pause before the next attempt" + attempt
	case "waited", "person":
		return "waited " + short(time.Duration(b.of.Waited)) + attempt
	}
	return "ran " + short(time.Duration(b.of.Ran)) + attempt + ": " + b.of.Text
}

// unfinished adds what still lasts: a request at a worker runs, others wait.
func (t *timeline) unfinished(j *view.Job, at map[laneKey]int) {
	rows := which(j.Messages, func(m *view.Message) bool {
		return m.Open && (m.Kind == journal.MessageRequest || m.Held != "")
	})
	if len(rows)+len(j.Waits) == 0 {
		return
	}
	last := map[laneKey]*view.Event{}
	for i := range j.Events {
		ev := &j.Events[i]
		last[keyOf(ev.Activity, ev.Address, ev.Element)] = ev
	}
	open := func(activity, address string, element *int, class, text string) {
		key := keyOf(activity, address, element)
		n, known := at[key]
		if !known && element == nil {
			return
		} else if !known {
			n = len(t.Lanes)
			at[key], t.Lanes = n, append(t.Lanes, lane{Name: placed(activity, element, 0), Activity: activity})
		}
		from := t.From
		if ev := cmp.Or(last[key], last[keyOf(activity, address, nil)]); ev != nil {
			from = ev.Time
		}
		t.Lanes[n].Bars = append(t.Lanes[n].Bars, bar{Class: class + " open", From: from, To: t.To, Text: text})
	}
	for _, m := range rows {
		switch {
		case m.Held == view.HeldParked || m.Held == view.HeldStuck:
			open(m.Activity, m.Address, m.Element, "person", "waits for a person")
		case m.Holder != "":
			open(m.Activity, m.Address, m.Element, "ran", "runs at "+m.Holder)
		case m.Held == "" && m.Attempt > 1 && m.Due.After(t.To) && !m.Out:
			open(m.Activity, m.Address, m.Element, "backoff", fmt.Sprintf("pause before attempt %d", m.Attempt))
		case m.Held == "":
			open(m.Activity, m.Address, m.Element, "waited", "waits")
		}
	}
	for i := range j.Waits {
		w := &j.Waits[i]
		open(w.Activity, w.Address, nil, "waited", "waits for signal "+w.Topic)
	}
}

// fold makes one lane of each activity, and of its bars one for each part of the time. The first lanes with
// a failure stay as they are, above those.
func (t *timeline) fold() {
	t.Folded = true
	var failed, folded []lane
	at := map[string]int{}
	parts := map[string][buckets]int{}
	span := t.To.Sub(t.From)
	for _, l := range t.Lanes {
		if len(failed) < maxFailed && l.trouble() < 2 {
			failed = append(failed, l)
			continue
		}
		if _, known := at[l.Activity]; !known {
			at[l.Activity] = len(folded)
			folded = append(folded, lane{Name: l.Activity, Activity: l.Activity})
		}
		counts := parts[l.Activity]
		for _, b := range l.Bars {
			if b.Class == "ran" || b.Class == "failed" || b.Class == "ran open" {
				counts[min(buckets-1, max(0, int(b.To.Sub(t.From)*buckets/span)))]++
			}
		}
		parts[l.Activity] = counts
	}
	for i := range folded {
		l := &folded[i]
		for n, count := range parts[l.Activity] {
			if count > 0 {
				from := t.From.Add(span * time.Duration(n) / buckets)
				l.Bars = append(l.Bars,
					bar{Class: "many", From: from, To: from.Add(span / buckets), N: count, Text: counted(count, "attempt") + " ended here"})
			}
		}
	}
	t.Lanes = append(failed, folded...)
}

// place computes where everything is.
func (t *timeline) place() {
	if len(t.Lanes) > maxLanes {
		t.Left, t.Lanes = len(t.Lanes)-maxLanes, t.Lanes[:maxLanes]
	}
	span := float64(t.To.Sub(t.From))
	x := func(at time.Time) float64 {
		return laneName + min(laneWidth, max(0, float64(at.Sub(t.From))/span*laneWidth))
	}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		if l.of != nil {
			l.Name = placed(l.of.Activity, l.of.Element, l.of.Pass)
		}
		l.Y = axisHeight + i*laneHeight
		slices.SortStableFunc(l.Bars, func(a, b bar) int {
			return cmp.Or(cmp.Compare(a.above(), b.above()), a.From.Compare(b.From))
		})
		for n := range l.Bars {
			b := &l.Bars[n]
			if b.of != nil {
				b.Text = b.says()
			}
			b.X, b.Y = x(b.From), float64(l.Y+4)
			b.W = max(2+2*float64(b.above()), x(b.To)-b.X)
			b.X = min(b.X, laneName+laneWidth-b.W)
		}
	}
	t.Height = axisHeight + len(t.Lanes)*laneHeight + 6
	const ticks = 4
	for i := range ticks + 1 {
		d := t.To.Sub(t.From) * time.Duration(i) / ticks
		t.Ticks = append(t.Ticks, tick{x(t.From.Add(d)), short(d.Round(time.Millisecond))})
	}
}
