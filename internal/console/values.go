package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Limits of what jobs say on the page of one, bytes. A longer value is cut and has a page of its
// own; when the room of the page is used up, its other values show their sizes alone.
const (
	maxValue  = 2_000
	maxValues = 50_000
	tiny      = 80 // a value that stands in its line, and takes no room
)

// value is an input or an output, as much of it as a page shows.
type value struct {
	Missing string
	Size    int
	Text    string // "" if the page has no room left
	Line    bool   // it is short
	Cut     bool
	Whole   string // address of all of it, "" for none
}

// Value is as much of a value as there is room for.
func (p *jobPage) Value(v *view.Value) value {
	if v.Missing != "" {
		return value{Missing: v.Missing}
	}
	x := value{Size: len(v.JSON)}
	switch {
	case x.Size <= tiny:
		x.Text, x.Line = string(v.JSON), true
		return x
	case x.Size <= maxValue:
		x.Text = pretty(v.JSON)
	default:
		x.Text = string(v.JSON[:maxValue+1])
	}
	x.Text, x.Cut = p.room(x.Text)
	if at, known := p.whole[v]; known && x.Cut {
		x.Whole = at.address(p.Job.ID)
	}
	return x
}

// failure is an error, as much of it as a page shows.
type failure struct{ Message, Class, Stack string }

// Failure is as much of an error as there is room for.
func (p *jobPage) Failure(f *view.Failure) failure {
	x := failure{Message: cut(f.Message, maxValue/4), Class: f.Class}
	x.Stack, _ = p.room(f.Stack)
	return x
}

// room takes the room of a text.
func (p *jobPage) room(text string) (shown string, shorter bool) {
	shown = cut(text, maxValue)
	if p.taken+len(shown) > maxValues {
		return "", true
	}
	p.taken += len(shown)
	return shown, shown != text
}

// told is where a value stands: the entry that tells it, and which of its values it is.
type told struct {
	chain journal.GUID
	seq   int64
	n     int
}

// wholesOf says where the values stand that a page may have to cut.
func wholesOf(events []view.Event) map[*view.Value]told {
	all := map[*view.Value]told{}
	of := map[told]int{}
	for i := range events {
		ev := &events[i]
		for _, v := range []*view.Value{ev.Input, ev.Output} {
			if v == nil || len(v.JSON) <= tiny {
				continue
			}
			if _, known := all[v]; known {
				continue
			}
			at := told{ev.Chain, ev.Entry, 0}
			all[v] = told{ev.Chain, ev.Entry, of[at]}
			of[at]++
		}
	}
	return all
}

// wholes says where the values of the job stand. Its input and its output, and the results of its
// effects, are those of events, too.
func (p *jobPage) wholes() {
	j := p.Job
	p.whole = wholesOf(j.Events)
	if j.Output != nil {
		p.Output = &view.Value{JSON: j.Output}
	}
	same := func(v, of *view.Value) {
		if at, known := p.whole[of]; known && v != nil && bytes.Equal(v.JSON, of.JSON) {
			p.whole[v] = at
		}
	}
	results := map[told]*view.Value{}
	for i := range j.Events {
		switch ev := &j.Events[i]; {
		case ev.Kind == view.KindEffect:
			results[told{ev.Chain, ev.Entry, 0}] = ev.Output
		case ev.Activity == "":
			same(j.Input, ev.Input)
			same(p.Output, ev.Output)
		}
	}
	for _, f := range p.Effects.Shown {
		for _, e := range f.Entries {
			same(f.Result, results[told{f.Request, e.Entry, 0}])
		}
	}
}

// address is that of the value's own page.
func (t told) address(id journal.JobID) string {
	q := url.Values{"entry": {fmt.Sprint(t.seq)}, "n": {fmt.Sprint(t.n)}}
	if !t.chain.IsZero() {
		q.Set("chain", t.chain.String())
	}
	return fmt.Sprintf("/jobs/%s/value?%s", id, q.Encode())
}

// value answers with one value, whole.
func (c *console) value(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readWait)
	defer cancel()
	id, err := journal.ParseJobID(r.PathValue("id"))
	if err != nil {
		c.fail(w, r, bad("%v", err))
		return
	}
	job, err := c.reader.Job(ctx, id, inspect.Want{Want: view.Want{Events: true}})
	if err != nil {
		c.fail(w, r, err)
		return
	}
	for v, at := range wholesOf(job.Events) {
		if at.address(id) == r.URL.RequestURI() {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write(v.JSON) // the caller may have gone
			return
		}
	}
	c.fail(w, r, bad("no entry of job %s tells this value", id))
}
