package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/view"
)

// bulkPage is the page of what can be done to all jobs that a filter selects (O7).
type bulkPage struct {
	*filter
	Counts *countsPage
	Filter url.Values // as the form has it
	Export string     // address of the export
	Doing  string     // the act that runs; "" before
	Page   string     // address of the jobs
}

// bulk counts what a filter selects, and offers the acts. The filter ends with the moment of the
// count, so that no job is acted on that nobody has seen counted.
func (c *console) bulk(ctx context.Context, r *http.Request) (*page, error) {
	p, err := c.selected(ctx, r, r.URL.Query())
	if err != nil {
		return nil, err
	}
	counts := &countsPage{Most: quipu.MaxCounted}
	if counts.JobCounts, err = c.rt.CountJobs(ctx, p.jobs); err != nil {
		return nil, err
	}
	for _, state := range journal.JobStates {
		if n := counts.ByState[state]; n > 0 {
			counts.States = append(counts.States, stateCount{State: state, N: n})
			counts.Selected += n
		}
	}
	p.Counts = counts
	return &page{Template: "bulk", Title: "Act on many jobs", Section: "jobs", Still: true, Data: p}, nil
}

// selected reads a filter and fixes its end.
func (c *console) selected(ctx context.Context, r *http.Request, q url.Values) (*bulkPage, error) {
	f, err := c.filterOf(ctx, r, q)
	if err != nil {
		return nil, err
	}
	p := &bulkPage{filter: f, Page: "/jobs?" + f.query().Encode()}
	if f.jobs.To.IsZero() {
		f.jobs.To = time.Now()
	}
	p.Filter = f.query()
	p.Filter.Del("last")
	p.Filter.Set("to", f.jobs.To.Format(time.RFC3339Nano))
	if !f.jobs.From.IsZero() {
		p.Filter.Set("from", f.jobs.From.Format(time.RFC3339Nano))
	}
	p.Export = "/bulk/export?" + p.Filter.Encode()
	return p, nil
}

// acts are what can be done to many jobs. Each says whether it did something.
func (c *console) acts(r *http.Request, name, reason string) func(*view.Summary) (bool, error) {
	switch name {
	case "interrupt":
		return func(j *view.Summary) (bool, error) {
			if j.State != journal.JobOpen {
				return false, nil
			}
			ended, err := c.end(r, quipu.Job{ID: j.ID}, reason)
			return !ended, err
		}
	case "retry":
		return func(j *view.Summary) (bool, error) { return c.retry(r, j, reason) }
	case "resume":
		return func(j *view.Summary) (bool, error) {
			if j.State != journal.JobFailed && j.State != journal.JobInterrupted {
				return false, nil
			}
			_, err := c.rt.Resume(r.Context(), quipu.Job{ID: j.ID}, quipu.Who(c.who(r)), quipu.Reason(reason))
			return true, err
		}
	}
	return nil
}

// retry releases the open dead letters of a job.
func (c *console) retry(r *http.Request, j *view.Summary, reason string) (did bool, err error) {
	letters, err := c.rt.Operator().DeadLetters(r.Context(),
		quipu.DeadLetterFilter{Jobs: []journal.JobID{j.ID}, Limit: store.MaxPage})
	for i := range letters {
		err = errors.Join(err, c.rt.Operator().Decide(r.Context(), quipu.Decision{
			DeadLetter: letters[i].ID, Verdict: quipu.Retry, Who: c.who(r), Reason: reason,
		}))
	}
	return len(letters) > 0, err
}

// Progress of an act on many jobs.
const (
	sayEvery = time.Second
	maxSaid  = 20 // errors that are told one by one
)

// runBulk acts on all jobs that the filter selects, maxActs at a time, and writes the page as it goes on.
// It lasts as long as somebody reads the page: to leave it ends the act between two jobs.
func (c *console) runBulk(w http.ResponseWriter, r *http.Request) {
	p, err := c.selected(r.Context(), r, r.PostForm)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	reason, name := strings.TrimSpace(r.PostFormValue("reason")), r.PostFormValue("act")
	act := c.acts(r, name, reason)
	if act == nil || reason == "" {
		c.fail(w, r, bad("choose interrupt, retry or resume, and say why: the reason is written to the journal"))
		return
	}
	count, err := number("count", r.PostFormValue("count"))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	p.Doing = name
	var b bytes.Buffer
	v := &page{
		Template: "bulk", Title: title(name) + " many jobs", Section: "jobs", Still: true, Space: c.cfg.Space, Build: c.cfg.Build, Page: "/bulk",
		Data: p,
	}
	if err := c.pages.sets["bulk"].ExecuteTemplate(&b, "frame.html", v); err != nil {
		c.fail(w, r, err)
		return
	}
	const list = `aria-label="Progress">`
	head, foot, _ := strings.Cut(b.String(), list)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	out := &progress{w: w, of: count}
	out.write(head + list)
	c.each(r.Context(), p, act, out)
	out.write(foot)
}

// progress writes what an act on many jobs has done so far.
type progress struct {
	mu                sync.Mutex // held while an act is counted
	w                 http.ResponseWriter
	of                int64 // how many the filter selected when they were counted; 0: that is not known
	seen, did, failed int
	said              time.Time
	broken            bool // nobody reads it any more
}

func (p *progress) write(text string) {
	access.Extend(p.w, access.StallWait)
	if _, err := fmt.Fprint(p.w, text); err != nil {
		p.broken = true
	}
	_ = http.NewResponseController(p.w).Flush() // a connection that is gone shows with the next write
}

// far says how far the act is.
func (p *progress) far() string {
	if p.of == 0 {
		return counted(p.seen, "job")
	}
	return fmt.Sprintf("%d of %s", p.seen, counted(p.of, "job"))
}

func (p *progress) say(format string, args ...any) {
	p.write("<li>" + html.EscapeString(fmt.Sprintf(format, args...)) + "</li>\n")
}

// maxActs bounds the jobs that an act is done to at a time. Those of one moment share commits.
const maxActs = 64

// each does the act to each job. The order of the list is not kept.
func (c *console) each(ctx context.Context, p *bulkPage, act func(*view.Summary) (bool, error), out *progress) {
	var acts errgroup.Group
	acts.SetLimit(maxActs)
	var listed, broken error
	for j, err := range c.rt.AllJobs(ctx, p.jobs) {
		if listed = err; err != nil {
			break
		}
		if broken = out.ended(ctx); broken != nil {
			break
		}
		acts.Go(func() error {
			did, err := act(&j)
			out.count(&j, did, err)
			return nil
		})
	}
	_ = acts.Wait() // errors are counted
	switch {
	case broken != nil:
		out.say("Broken off after %s, %d done, %d failed: %v. Begin again for the rest.", out.far(), out.did, out.failed, broken)
		return
	case listed != nil:
		out.say("the list ended: %v", listed)
	}
	out.say("Finished: %s looked at, %d done, %d failed, %d had nothing to do", out.far(), out.did, out.failed, out.seen-out.did-out.failed)
}

// errLeft says that nobody reads the page any more.
var errLeft = errors.New("the page was left")

// ended says why no further job is to be acted on, nil for no reason.
func (p *progress) ended(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := context.Cause(ctx); err != nil || !p.broken {
		return err
	}
	return errLeft
}

// count counts what became of a job, and now and then says how far the act is. It may be called from several
// goroutines.
func (p *progress) count(j *view.Summary, did bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	switch {
	case err != nil:
		if p.failed++; p.failed <= maxSaid {
			p.say("%s: %v", j.Key, err)
		}
	case did:
		p.did++
	}
	if time.Since(p.said) > sayEvery {
		p.said = time.Now()
		p.say("%s looked at, %d done, %d failed", p.far(), p.did, p.failed)
	}
}

// exportWait bounds an export of any number of jobs.
const exportWait = time.Hour

// exportMany downloads the journals of all jobs that a filter selects. One that expires meanwhile
// is left out.
func (c *console) exportMany(w http.ResponseWriter, r *http.Request) {
	p, err := c.selected(r.Context(), r, r.URL.Query())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exportWait)
	defer cancel()
	download(w, "jobs.jsonl")
	out := export.NewWriter(&access.Steady{ResponseWriter: w})
	for j, err := range c.rt.AllJobs(ctx, p.jobs) {
		if err == nil && j.State != journal.JobExpired {
			err = c.reader.Export(ctx, j.ID, out)
		}
		if err != nil && !errors.Is(err, quipu.ErrNotFound) {
			panic(http.ErrAbortHandler) // so that nobody takes what is there for the whole
		}
	}
	if out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
}
