package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
)

// idempotencyKey reads the header. It may be in quotes, as a structured field.
func idempotencyKey(r *http.Request) string {
	text := strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	if bare, ok := strings.CutPrefix(text, `"`); ok {
		return strings.TrimSuffix(bare, `"`)
	}
	return text
}

// request reads what is to be started. The idempotency key of a start is the job's key.
func (s *StartRequest) request(header string) (quipu.StartRequest, error) {
	r := quipu.StartRequest{Flow: s.Flow, Version: s.Version, Key: cmp.Or(s.Key, header), Input: s.Input, Tags: s.Tags}
	if header != "" && r.Key != header {
		return r, malformed("the job's key is what makes a start idempotent: leave Idempotency-Key out, or give the same text in both")
	}
	if s.Flow == "" {
		return r, malformed("flow is missing")
	}
	if s.Input == nil {
		r.Input = json.RawMessage("{}")
	}
	if s.At != nil {
		r.At = *s.At
	}
	return r, duration("delay", s.Delay, &r.Delay)
}

// duration reads a duration of a body.
func duration(name, text string, to *time.Duration) (err error) {
	if text == "" {
		return nil
	}
	if *to, err = span(text); err != nil {
		return malformed(name + ": " + err.Error())
	}
	return nil
}

// span reads a duration.
func span(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		err = errors.New("it is a duration such as 90s or 24h")
	}
	return d, err
}

func (a *api) start(w http.ResponseWriter, r *http.Request) error {
	var body StartRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	req, err := body.request(idempotencyKey(r))
	if err != nil {
		return err
	}
	req.Who = access.Of(r.Context()).Name
	all, err := a.rt.StartMany(r.Context(), []quipu.StartRequest{req})
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		return err
	}
	job, status, word := all[0].Job, http.StatusCreated, "new"
	if job.Existing {
		status, word = http.StatusOK, "already"
	}
	w.Header().Set("Location", Path+"/jobs/"+url.PathEscape(job.Key))
	return answer(w, status, Started{Key: job.Key, Job: job.ID.String(), Start: word})
}

// filters are the parameters that select jobs.
var filters = []string{"state", "flow", "version", "prefix", "waits", "tag", "parent", "from", "to"}

// filter reads them.
func filter(q *query) quipu.JobFilter {
	f := quipu.JobFilter{Tags: q.values["tag"]}
	for _, s := range q.values["state"] {
		if !slices.Contains(journal.JobStates, journal.JobState(s)) {
			q.err = cmp.Or(q.err, malformed(fmt.Sprintf("parameter state: it is one of %v", journal.JobStates)))
		}
		f.States = append(f.States, journal.JobState(s))
	}
	read(q, "flow", &f.Flow, plain)
	read(q, "version", &f.Version, plain)
	read(q, "prefix", &f.Prefix, plain)
	read(q, "waits", &f.Waits, plain)
	read(q, "parent", &f.Parent, journal.ParseJobID)
	read(q, "from", &f.From, instant)
	read(q, "to", &f.To, instant)
	return f
}

func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, append(filters, "cursor", "limit")...)
	f := filter(q)
	f.Limit = limitOf(q, MaxLimit)
	read(q, "cursor", &f.Before, plain)
	if q.err != nil {
		return q.err
	}
	found, err := a.rt.Jobs(r.Context(), f)
	if err != nil {
		return err
	}
	if err := a.reader.Annotate(r.Context(), found.Jobs); err != nil {
		return err
	}
	return answer(w, http.StatusOK, Page{Jobs: found.Jobs, Next: found.Next})
}

// Limits of a page of a list of jobs or dead letters.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// limitOf reads the size of a page, at most most items.
func limitOf(q *query, most int) int {
	n := int64(DefaultLimit)
	read(q, "limit", &n, number)
	if q.err == nil && (n < 1 || n > int64(most)) {
		q.err = malformed("parameter limit: it is 1 to " + strconv.Itoa(most))
	}
	return int(n)
}

func (a *api) count(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, filters...)
	f := filter(q)
	if q.err != nil {
		return q.err
	}
	counted, err := a.rt.CountJobs(r.Context(), f)
	if err != nil {
		return err
	}
	c := Counts{Jobs: map[string]int64{}, Looked: counted.Looked, Cut: counted.Cut}
	for state, n := range counted.ByState {
		c.Jobs[string(state)] = n
	}
	return answer(w, http.StatusOK, c)
}

func (a *api) space(w http.ResponseWriter, r *http.Request) error {
	s, err := a.rt.Space(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, s)
}
