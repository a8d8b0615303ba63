package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

// pageSize is the number of jobs on a page.
const pageSize = 50

// jobsPage is the list of jobs (O7).
type jobsPage struct {
	*filter
	All   []journal.JobState
	For   any // what jobs wait for
	Spans any
	Flows []string
	quipu.JobPage
	Next   string // address of the next page, "" for none
	First  string // address of the first page, "" if this is it
	Counts string // address of the counts
	Bulk   string // address of the actions on all that the filter selects
	Now    time.Time
	// Dead is how many dead letters wait for a decision, ManyDead that there are more.
	Dead     int
	ManyDead bool
}

// maxDead is how many open dead letters the list of jobs counts.
const maxDead = 100

// jobs lists a page of jobs. It reads no more of the table than the page and what the filter
// without an index leaves out, so it does not count: counts does, for who asks.
func (c *console) jobs(ctx context.Context, r *http.Request) (*page, error) {
	q := r.URL.Query()
	f, err := c.filterOf(ctx, r, q)
	if err != nil {
		return nil, err
	}
	f.jobs.Before, f.jobs.Limit = q.Get("before"), pageSize
	p := &jobsPage{filter: f, All: journal.JobStates, For: waits, Spans: periods, Now: time.Now()}
	if p.JobPage, err = c.rt.Jobs(ctx, f.jobs); err != nil {
		return nil, err
	}
	if p.Flows, err = c.flowNames(ctx); err != nil {
		return nil, err
	}
	letters, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Limit: maxDead + 1})
	if err != nil {
		return nil, err
	}
	p.Dead, p.ManyDead = min(len(letters), maxDead), len(letters) > maxDead
	address := f.query()
	p.Counts, p.Bulk = "/jobs/counts?"+address.Encode(), "/bulk?"+address.Encode()
	if f.jobs.Before != "" {
		p.First = "/jobs?" + address.Encode()
	}
	if p.JobPage.Next != "" {
		address.Set("before", p.JobPage.Next)
		p.Next = "/jobs?" + address.Encode()
	}
	return &page{Template: "jobs", Title: "Jobs", Section: "jobs", Still: f.jobs.Before != "", Data: p}, nil
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
