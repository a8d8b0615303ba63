package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// maxActs bounds the jobs that a bulk act is done to at a time. Those of one moment share commits.
const maxActs = 64

// bulkAct does an act to one job. It says whether it did something.
type bulkAct func(ctx context.Context, j *view.Summary) (did bool, err error)

// bulkInterrupt ends the jobs of a page that are open.
func (a *api) bulkInterrupt(w http.ResponseWriter, r *http.Request) error {
	var body BulkInterruptRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	options := []quipu.InterruptOption{
		quipu.Descend(body.Descend), quipu.Throw(!body.NoThrow),
		quipu.Who(access.Of(r.Context()).Name), quipu.Reason(body.Reason),
	}
	if body.Code != 0 {
		options = append(options, quipu.Code(body.Code))
	}
	return a.bulk(w, r, body.Jobs, body.Reason, func(ctx context.Context, j *view.Summary) (bool, error) {
		if j.State != journal.JobOpen {
			return false, nil
		}
		done, err := a.rt.Interrupt(ctx, quipu.Job{ID: j.ID}, options...)
		return err == nil && !done.Closed, err
	})
}

// bulkResume goes on with the jobs of a page that failed or were interrupted.
func (a *api) bulkResume(w http.ResponseWriter, r *http.Request) error {
	var body BulkResumeRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	who := access.Of(r.Context()).Name
	return a.bulk(w, r, body.Jobs, body.Reason, func(ctx context.Context, j *view.Summary) (bool, error) {
		if j.State != journal.JobFailed && j.State != journal.JobInterrupted {
			return false, nil
		}
		_, err := a.rt.Resume(ctx, quipu.Job{ID: j.ID, Key: j.Key},
			quipu.From(body.From), quipu.Who(who), quipu.Reason(body.Reason))
		return err == nil, err
	})
}

// bulk does an act to the jobs of one page, and answers what became of each, in the order of the page.
func (a *api) bulk(w http.ResponseWriter, r *http.Request, named []string, reason string, act bulkAct) error {
	if reason == "" {
		return malformed("reason is missing: say why, for the journals of the jobs")
	}
	page, err := a.bulkPage(r, named)
	if err != nil {
		return err
	}
	out := Acted{Jobs: make([]ActedOn, len(page.Jobs)), Next: page.Next}
	var acts errgroup.Group
	acts.SetLimit(maxActs)
	for i := range page.Jobs {
		acts.Go(func() error {
			j := &page.Jobs[i]
			x := ActedOn{Key: j.Key, Job: j.ID.String()}
			var err error
			if j.State == "" { // it was named by its id
				err = a.stand(r.Context(), j)
				x.Key = j.Key
			}
			if err == nil {
				x.Did, err = act(r.Context(), j)
			}
			if err != nil {
				x.Problem = problemOf(err)
			}
			out.Jobs[i] = x
			return nil
		})
	}
	_ = acts.Wait() // each job has its problem
	return answer(w, http.StatusOK, out)
}

// bulkPage is the page that the filter of the query selects, or the jobs that the body names.
func (a *api) bulkPage(r *http.Request, ids []string) (page quipu.JobPage, err error) {
	q := parameters(r, append(filters, "cursor", "limit")...)
	f := filter(q)
	f.Limit = limitOf(q, MaxLimit)
	read(q, "cursor", &f.Before, plain)
	switch named := len(ids) > 0; {
	case q.err != nil:
		return page, q.err
	case named == (len(q.values) > 0):
		return page, malformed("name jobs, or give a filter as parameters: one of the two")
	case len(ids) > MaxLimit:
		return page, malformed("jobs: at most " + strconv.Itoa(MaxLimit) + " at a time")
	case !named:
		return a.rt.Jobs(r.Context(), f)
	}
	for _, text := range ids {
		id, err := journal.ParseJobID(text)
		if err != nil {
			return page, malformed("jobs: " + err.Error())
		}
		page.Jobs = append(page.Jobs, view.Summary{ID: id})
	}
	return page, nil
}

// stand reads key and state of a job.
func (a *api) stand(ctx context.Context, j *view.Summary) error {
	now, err := a.rt.Job(ctx, quipu.Job{ID: j.ID})
	if err != nil {
		return err
	}
	j.Key, j.State = now.Key, cmp.Or(now.State, j.State)
	return nil
}
