package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// pageSize is the number of jobs on a page.
const pageSize = 50

// jobsPage is the list of jobs (O7).
type jobsPage struct {
	*filter
	Text    string // of the search box
	Problem string // why it cannot be read; "" if it can
	Chips   []chip
	All     []journal.JobState
	For     any // what jobs wait for
	Spans   []period
	Flows   []string
	quipu.JobPage
	Notes  map[journal.JobID]inspect.Note
	Next   string // address of the next page, "" for none
	First  string // address of the first page, "" if this is it
	Counts string // address of the counts
	Bulk   string // address of the actions on all that the filter selects
	// Dead is how many dead letters wait for a decision, ManyDead that there are more.
	Dead     int
	ManyDead bool
	// Failing are flows whose jobs failed in the last hour, the last one first, and More how many more
	// there are.
	Failing []view.FlowFailing
	More    int
}

const (
	// maxDead is how many open dead letters the list of jobs counts.
	maxDead = 100
	// maxFailing is how many flows whose jobs failed it names.
	maxFailing = 8
)

// jobs lists a page of jobs. It reads no more of the table than the page and what the filter
// without an index leaves out, so it does not count: counts does, for who asks.
func (c *console) jobs(ctx context.Context, r *http.Request) (*page, error) {
	q := r.URL.Query()
	p := &jobsPage{All: journal.JobStates, For: waits, Spans: periods}
	v := &page{Template: "jobs", Title: "Jobs", Section: "jobs", Data: p}
	var err error
	if p.Flows, err = c.flowNames(ctx); err != nil {
		return nil, err
	}
	if q.Has("q") {
		return v, c.searched(ctx, r, v, p)
	}
	if p.filter, err = c.filterOf(ctx, r, q); err != nil {
		return nil, err
	}
	p.Text, p.Chips, p.Spans = p.text(), p.chips(), spansWith(p.Last)
	p.jobs.Before, p.jobs.Limit = q.Get("before"), pageSize
	if p.JobPage, err = c.rt.Jobs(ctx, p.jobs); err != nil {
		return nil, err
	}
	if p.Notes, err = c.reader.Notes(ctx, p.Jobs); err != nil {
		return nil, err
	}
	v.Still = p.jobs.Before != ""
	address := p.query()
	p.Counts, p.Bulk = "/jobs/counts?"+address.Encode(), "/bulk?"+address.Encode()
	if v.Still {
		p.First = "/jobs?" + address.Encode()
	}
	if p.JobPage.Next != "" {
		address.Set("before", p.JobPage.Next)
		p.Next = "/jobs?" + address.Encode()
	}
	return v, c.alerts(ctx, p)
}

// searched goes to the list that the words of the search box mean, or says at the box what is wrong
// with them.
func (c *console) searched(ctx context.Context, r *http.Request, v *page, p *jobsPage) error {
	p.Text = r.URL.Query().Get("q")
	q, err := valuesOf(p.Text)
	if err == nil {
		p.filter, err = c.filterOf(ctx, r, q)
	}
	if err == nil {
		v.Redirect = strings.TrimSuffix("/jobs?"+q.Encode(), "?")
		return nil
	}
	status, _ := statusOf(err)
	if status >= http.StatusInternalServerError {
		return err
	}
	p.filter, p.Problem, v.Status, v.Still = &filter{}, err.Error(), http.StatusBadRequest, true
	return nil
}

// alerts reads what somebody on call has to see before any list: what waits for a decision, and which
// flows fail.
func (c *console) alerts(ctx context.Context, p *jobsPage) error {
	letters, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Limit: maxDead + 1})
	if err != nil {
		return err
	}
	p.Dead, p.ManyDead = min(len(letters), maxDead), len(letters) > maxDead
	now, err := c.reader.Clock(ctx)
	if err != nil {
		return err
	}
	all, err := c.reader.Failing(ctx, now)
	p.Failing = all[:min(len(all), maxFailing)]
	p.More = len(all) - len(p.Failing)
	return err
}

// flowNames are the names of the deployed flows.
func (c *console) flowNames(ctx context.Context) ([]string, error) {
	flows, err := below.Of(c.rt).Flows(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range flows {
		names = append(names, f.Ref.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// countsPage are the counts of a filter.
type countsPage struct {
	States []stateCount
	quipu.JobCounts
	Selected int64
	Most     int64
}

// stateCount is the number of jobs in one state, and the address of their list.
type stateCount struct {
	State journal.JobState
	N     int64
	Page  string
}

// counts counts by state what a filter selects. The states of the filter itself do not count, so
// that each state can be chosen. Without a time range it is the usual one.
func (c *console) counts(ctx context.Context, r *http.Request) (*page, error) {
	f, err := c.filterOf(ctx, r, r.URL.Query())
	if err != nil {
		return nil, err
	}
	address := f.query()
	f.jobs.States = nil
	p := &countsPage{Most: quipu.MaxCounted}
	if p.JobCounts, err = c.rt.CountJobs(ctx, f.jobs); err != nil {
		return nil, err
	}
	for _, state := range journal.JobStates {
		address.Del("state")
		address.Set("state", string(state))
		if f.Last == "" && f.From == "" && f.To == "" { // all were counted, so all are listed
			address.Set("last", "all")
		}
		p.States = append(p.States, stateCount{state, p.ByState[state], "/jobs?" + address.Encode()})
		p.Selected += p.ByState[state]
	}
	return &page{Template: "counts", Part: r.URL.Query().Get("part") != "", Title: "Counts", Section: "jobs", Still: true, Data: p}, nil
}

// find goes to the job of a key, or of an id.
func (c *console) find(w http.ResponseWriter, r *http.Request) {
	id, err := c.reader.Find(r.Context(), r.URL.Query().Get("key"))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/jobs/"+url.PathEscape(id.String()), http.StatusSeeOther)
}
