package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Limits of a page of what a journal tells.
const (
	MaxItems = 10_000  // items; DefaultLimit by default
	maxPage  = 8 << 20 // bytes; but a page has at least one item, whatever its size
)

// get reads a job. It reads the journal only if a parameter asks for what the journal has.
func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "at", "journal", "reasons", "addresses")
	want := view.Want{At: entryOf(q), Graph: true, Effects: true}
	read(q, "journal", &want.Journal, truth)
	read(q, "reasons", &want.Reasons, truth)
	read(q, "addresses", &want.Addresses, truth)
	if q.err != nil {
		return q.err
	}
	show := func(a *api, w http.ResponseWriter, r *http.Request) error {
		j, err := a.job(r, want)
		if err != nil {
			return err
		}
		return answer(w, http.StatusOK, j)
	}
	reads := want.At > 0 || want.Journal
	if want.Reasons && !reads { // how a job ended, its journal says
		var err error
		if reads, err = a.closed(r); err != nil {
			return err
		}
	}
	if reads {
		return long(show)(a, w, r)
	}
	return quick(show)(a, w, r)
}

// closed reports whether the job of a path has closed.
func (a *api) closed(r *http.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(r.Context(), callWait)
	defer cancel()
	id, err := a.reader.Find(ctx, r.PathValue("job"))
	if err != nil {
		return false, err
	}
	now, err := a.reader.Outcomes(ctx, []journal.JobID{id})
	return now[id].State != journal.JobOpen, err
}

// job reads what is wanted of the job of a path, with what those who ask may see of it.
func (a *api) job(r *http.Request, want view.Want) (*view.Job, error) {
	id, err := a.reader.Find(r.Context(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	return a.reader.Job(r.Context(), id, inspect.Want{Want: want, Hidden: !access.Of(r.Context()).Payloads})
}

func (a *api) messages(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "at", "guid", "cursor", "limit")
	want, guid, part := view.Want{At: entryOf(q), Messages: true}, "", sliceOf(q)
	read(q, "guid", &guid, plain)
	if q.err != nil {
		return q.err
	}
	j, err := a.job(r, want)
	if err != nil {
		return err
	}
	if guid != "" {
		m, err := messageOf(j, strings.ToLower(guid))
		if err != nil {
			return err
		}
		return answer(w, http.StatusOK, Messages{Messages: []view.Message{*m}})
	}
	all, next, err := cut(j.Messages, part)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Messages{Messages: all, Next: next})
}

// messageOf is the only message whose GUID begins so.
func messageOf(j *view.Job, guid string) (found *view.Message, err error) {
	n := 0
	for i := range j.Messages {
		if strings.HasPrefix(j.Messages[i].GUID.String(), guid) {
			found, n = &j.Messages[i], n+1
		}
	}
	switch {
	case n == 0:
		return nil, access.NewProblem(http.StatusNotFound, CodeNotFound,
			fmt.Sprintf("none of the %d messages of job %q has a GUID that begins with %.40q", len(j.Messages), j.Key, guid))
	case n > 1:
		return nil, malformed(fmt.Sprintf("parameter guid: %d messages of job %q have a GUID that begins with %.40q: give more of it",
			n, j.Key, guid))
	}
	return found, nil
}

func (a *api) events(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "at", "cursor", "limit")
	want, part := view.Want{At: entryOf(q), Events: true}, sliceOf(q)
	if q.err != nil {
		return q.err
	}
	j, err := a.job(r, want)
	if err != nil {
		return err
	}
	all, next, err := cut(j.Events, part)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Events{Events: all, Next: next})
}

func (a *api) trace(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "at", "cursor", "limit")
	want, part := view.Want{At: entryOf(q), Tree: true}, sliceOf(q)
	if q.err != nil {
		return q.err
	}
	j, err := a.job(r, want)
	if err != nil {
		return err
	}
	out := Trace{Tree: *j.Tree}
	if out.Spans, out.Next, err = cut(j.Tree.Spans, part); err != nil {
		return err
	}
	return answer(w, http.StatusOK, out)
}

// entryOf reads the entry that a job is shown at; 0: it is shown as it stands.
func entryOf(q *query) (at int64) {
	read(q, "at", &at, func(text string) (int64, error) {
		n, err := number(text)
		if err == nil && n < 1 {
			err = errors.New("entries count from 1")
		}
		return n, err
	})
	return at
}

// slice is the place of a page in a list.
type slice struct{ from, limit int }

// sliceOf reads it: the cursor is an index in the list.
func sliceOf(q *query) slice {
	s := slice{limit: limitOf(q, MaxItems)}
	read(q, "cursor", &s.from, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			err = errors.New("it is the next of the page before")
		}
		return n, err
	})
	return s
}

// cut takes a page out of a list: limit items, and at most maxPage bytes of them.
func cut[T any](all []T, s slice) (page []T, next string, err error) {
	if s.from > len(all) {
		return nil, "", malformed(fmt.Sprintf("parameter cursor: it is %d, and the list has %d items", s.from, len(all)))
	}
	page, end := []T{}, min(s.from+s.limit, len(all))
	for size := 0; s.from < end; s.from++ {
		text, err := json.Marshal(all[s.from])
		if err != nil {
			return nil, "", err
		}
		if size += len(text); size > maxPage && len(page) > 0 {
			break
		}
		page = append(page, all[s.from])
	}
	if s.from < len(all) {
		next = strconv.Itoa(s.from)
	}
	return page, next, nil
}
