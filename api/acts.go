package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
)

func (a *api) signal(w http.ResponseWriter, r *http.Request) error {
	var body SignalRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	options := []quipu.SignalOption{quipu.Who(access.Of(r.Context()).Name)}
	if key := idempotencyKey(r); key != "" {
		options = append(options, quipu.IdempotencyKey(key))
	}
	if body.Code != 0 {
		options = append(options, quipu.Code(body.Code))
	}
	send := a.rt.Signal
	switch {
	case body.All && body.Keep != "":
		return malformed("all and keep: a signal to all that wait now is not kept")
	case body.All:
		send = a.rt.SignalAll
	case body.Keep != "":
		keep := quipu.DefaultKeep
		if err := duration("keep", body.Keep, &keep); err != nil {
			return err
		}
		options = append(options, quipu.Keep(keep))
	}
	if body.Payload == nil {
		body.Payload = json.RawMessage("null")
	}
	done, err := send(r.Context(), body.Topic, body.Key, body.Payload, options...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK,
		Signalled{State: string(done.State), Duplicate: done.Duplicate, Reached: done.Reached})
}

// interrupt ends the job of an id. A key would mean whoever has it when the request arrives: perhaps
// a job that was begun since the caller looked.
func (a *api) interrupt(w http.ResponseWriter, r *http.Request) error {
	var body InterruptRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	id, err := idOf(r, "an interrupt")
	if err != nil {
		return err
	}
	options := []quipu.InterruptOption{
		quipu.Descend(body.Descend), quipu.Throw(!body.NoThrow), quipu.Who(access.Of(r.Context()).Name),
	}
	if body.Code != 0 {
		options = append(options, quipu.Code(body.Code))
	}
	if body.Reason != "" {
		options = append(options, quipu.Reason(body.Reason))
	}
	if key := idempotencyKey(r); key != "" {
		options = append(options, quipu.IdempotencyKey(key))
	}
	done, err := a.rt.Interrupt(r.Context(), quipu.Job{ID: id}, options...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK,
		Interrupted{Key: done.Job.Key, Job: done.Job.ID.String(), Duplicate: done.Duplicate, Closed: done.Closed})
}

// idOf reads the id of a job of a path, for an act that names no job by its key.
func idOf(r *http.Request, act string) (journal.JobID, error) {
	id, err := journal.ParseJobID(r.PathValue("job"))
	if err != nil {
		return id, malformed(act + " names a job by its id, not by its key: GET " + Path + "/jobs/KEY gives the id of the job that has the key now")
	}
	return id, nil
}

// resume goes on with the job of an id, in the next generation of its key.
func (a *api) resume(w http.ResponseWriter, r *http.Request) error {
	var body ResumeRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	id, err := idOf(r, "a resume")
	if err != nil {
		return err
	}
	// Its generation is read before: after a resume nothing may fail that would say that nothing was done.
	old, err := a.rt.Job(r.Context(), quipu.Job{ID: id})
	if err != nil {
		return err
	}
	job, err := a.rt.Resume(r.Context(), quipu.Job{ID: id, Key: old.Key},
		quipu.From(body.From), quipu.Who(access.Of(r.Context()).Name), quipu.Reason(body.Reason))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Resumed{Key: job.Key, Job: job.ID.String(), Generation: old.Generation + 1})
}

// fork begins a job under another key that goes on from an entry of the job of an id.
func (a *api) fork(w http.ResponseWriter, r *http.Request) error {
	var body ForkRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	id, err := idOf(r, "a fork")
	if err != nil {
		return err
	}
	job, err := a.rt.Fork(r.Context(), quipu.Job{ID: id}, body.At, body.Key,
		quipu.Who(access.Of(r.Context()).Name), quipu.Reason(body.Reason))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, Forked{Key: job.Key, Job: job.ID.String()})
}

func (a *api) deadLetters(w http.ResponseWriter, r *http.Request) error {
	q := parameters(r, "all", "flow", "topic", "reason", "prefix", "from", "to", "job", "cursor", "limit")
	f := quipu.DeadLetterFilter{Limit: limitOf(q, MaxLimit)}
	read(q, "all", &f.All, truth)
	read(q, "flow", &f.Flow, plain)
	read(q, "topic", &f.Topic, plain)
	read(q, "reason", (*string)(&f.Reason), plain)
	read(q, "prefix", &f.Prefix, plain)
	read(q, "from", &f.From, instant)
	read(q, "to", &f.To, instant)
	read(q, "cursor", &f.Before, number)
	if q.values.Has("job") {
		f.Jobs = make([]journal.JobID, 1)
		read(q, "job", &f.Jobs[0], journal.ParseJobID)
	}
	if q.err != nil {
		return q.err
	}
	all, err := a.rt.Operator().DeadLetters(r.Context(), f)
	if err != nil {
		return err
	}
	page := Letters{DeadLetters: all}
	if len(all) == f.Limit && f.Jobs == nil {
		page.Next = strconv.FormatInt(all[len(all)-1].ID, 10)
	}
	return answer(w, http.StatusOK, page)
}

func (a *api) decide(w http.ResponseWriter, r *http.Request) error {
	n, err := number(r.PathValue("id"))
	if err != nil {
		return malformed("the id of a dead letter is a number")
	}
	var body DecideRequest
	if err := decode(r, &body); err != nil {
		return err
	}
	d := quipu.Decision{
		DeadLetter: n, Verdict: quipu.Verdict(body.Verdict), Code: body.Code, Message: body.Message,
		Who: access.Of(r.Context()).Name, Reason: body.Reason,
	}
	if body.Effect != "" {
		if d.Effect, err = journal.ParseDigest(body.Effect); err != nil {
			return malformed("effect: " + err.Error())
		}
	}
	if body.Result != nil {
		d.Result = body.Result
	}
	if err := a.rt.Operator().Decide(r.Context(), d); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
