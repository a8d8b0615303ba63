package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Limits of waits.
const (
	DefaultWait = 30 * time.Second // of one long poll
	MaxWait     = time.Minute
	MaxStream   = 15 * time.Minute // of one event stream; a client then connects again
	beat        = 15 * time.Second // between two comments that keep a stream open
	writeMargin = 15 * time.Second // to write an answer
)

// wait answers when waiting is over, or after a time: one JSON object, or a stream of events for
// who accepts that.
func (a *api) wait(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "timeout", "until_parked")
	timeout, parked := DefaultWait, false
	read(q, "timeout", &timeout, span)
	read(q, "until_parked", &parked, truth)
	if q.err == nil && (timeout < 0 || timeout > MaxWait) {
		q.err = malformed(fmt.Sprintf("parameter timeout: it is 0s to %s", MaxWait))
	}
	if q.err != nil {
		return q.err
	}
	job, err := a.find(r.Context(), r.PathValue("job"))
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return a.stream(w, r, job)
	}
	access.Extend(w, timeout+writeMargin)
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	out, err := a.await(ctx, job, parked)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, out)
}

// find returns the job that has the key, or else the one with that id, with its key.
func (a *api) find(ctx context.Context, key string) (quipu.Job, error) {
	job, err := a.rt.Find(ctx, key)
	if !errors.Is(err, quipu.ErrNotFound) {
		return job, err
	}
	id, err := a.reader.Find(ctx, key)
	if err != nil {
		return job, err
	}
	v, err := a.rt.Job(ctx, quipu.Job{ID: id})
	if err != nil {
		return job, err
	}
	return quipu.Job{ID: id, Key: v.Key}, nil
}

func truth(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, errors.New("it is true or false")
	}
	return text == "true", nil
}

// await waits until ctx ends, and says how the job stands then.
func (a *api) await(ctx context.Context, job quipu.Job, untilParked bool) (*Outcome, error) {
	payloads := access.Of(ctx).Payloads
	out := &Outcome{Key: job.Key, Job: job.ID.String(), Hidden: !payloads}
	output, err := a.rt.Wait(ctx, job, quipu.UntilParked(untilParked))
	ended, isEnded := errors.AsType[*quipu.JobError](err)
	parked, isParked := errors.AsType[*quipu.ParkedError](err)
	switch {
	case err == nil:
		out.State, out.Ended, out.Code = string(journal.JobCompleted), true, collation.CodeOK
		if payloads {
			out.Output = output
		}
	case isEnded:
		out.State, out.Ended, out.Code, out.Error = string(ended.State), true, ended.Code,
			view.FailureOf(ended.Cause)
		if !payloads {
			out.Error = inspect.HideFailure(out.Error)
		}
	case isParked:
		out.State, out.DeadLetters = string(journal.JobOpen), parked.DeadLetters
	case ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded): // the time of this wait, and of nothing below it
		out.State = string(journal.JobOpen)
	default:
		return nil, err
	}
	return out, nil
}

// stream sends events: parked, once, when the job waits for a person; ended, when waiting is over.
// A stream that ends without it was bounded: the caller connects again.
func (a *api) stream(w http.ResponseWriter, r *http.Request, job quipu.Job) error {
	ctx, cancel := context.WithTimeout(r.Context(), MaxStream)
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for a proxy that would collect the events
	if err := event(w, "retry: 1000\n\n"); err != nil {
		return nil // the caller has gone
	}
	outcomes := make(chan *Outcome)
	go func() {
		defer close(outcomes)
		for parked := true; ; parked = false {
			out, err := a.await(ctx, job, parked)
			if err != nil {
				a.log.Warn("a stream of the API ended", "job", job.ID, "error", err)
			}
			if err != nil || ctx.Err() != nil {
				return
			}
			select {
			case outcomes <- out:
			case <-ctx.Done():
				return
			}
			if out.Ended {
				return
			}
		}
	}()
	err := follow(w, outcomes)
	cancel()
	for range outcomes { // the wait has ended when there are no more of them
	}
	return err
}

// follow writes outcomes as events until there are no more of them.
func follow(w http.ResponseWriter, outcomes <-chan *Outcome) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		text := ": the job goes on\n\n"
		select {
		case <-tick.C:
		case out, more := <-outcomes:
			if !more {
				return nil
			}
			body, err := json.Marshal(out)
			if err != nil {
				return err
			}
			name := "parked"
			if out.Ended {
				name = "ended"
			}
			text = "event: " + name + "\ndata: " + string(body) + "\n\n"
		}
		if err := event(w, text); err != nil {
			return nil // the caller has gone: its context ends the wait
		}
	}
}

// event writes a part of a stream at once.
func event(w http.ResponseWriter, text string) error {
	access.Extend(w, beat+writeMargin)
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
