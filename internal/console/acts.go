package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
)

// who is the person who asks, for the journal.
func (c *console) who(r *http.Request) string { return access.Of(r.Context()).Name }

// back is the page that an act returns to: one of the console.
func back(r *http.Request, otherwise string) string {
	u, err := url.Parse(r.PostFormValue("back"))
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") ||
		strings.Contains(u.Path, `\`) {
		return otherwise
	}
	return u.RequestURI()
}

// maxDecided bounds the dead letters that one request decides on.
const maxDecided = 1000

// decide decides on dead letters, one or many (O8, O9). Those that ended meanwhile do not stop the
// others: the page that follows says how many were decided.
func (c *console) decide(w http.ResponseWriter, r *http.Request) {
	d, err := decisionOf(r)
	switch {
	case err != nil:
	case len(r.PostForm["id"]) == 0:
		err = bad("choose a dead letter")
	case len(r.PostForm["id"]) > maxDecided:
		err = bad("%d dead letters: at most %d at a time", len(r.PostForm["id"]), maxDecided)
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	d.Who = c.who(r)
	done := 0
	var failed error
	for _, text := range r.PostForm["id"] {
		if d.DeadLetter, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = bad("its id is a number")
		} else {
			err = c.rt.Operator().Decide(r.Context(), d)
		}
		if err != nil {
			failed = fmt.Errorf("dead letter %.20s: %w", text, err)
			continue
		}
		done++
	}
	if done == 0 {
		c.fail(w, r, failed)
		return
	}
	said := counted(done, "dead letter") + " decided: " + string(d.Verdict)
	if left := len(r.PostForm["id"]) - done; left > 0 {
		said += fmt.Sprintf("; %d not: %v", left, failed)
	}
	c.done(w, r, back(r, "/dead"), said)
}

// done goes back to a page, which says what was done.
func (c *console) done(w http.ResponseWriter, r *http.Request, page, said string) {
	http.Redirect(w, r, with(page, "said", said), http.StatusSeeOther)
}

// decisionOf reads the verdict of a form. A field that the verdict does not have is left out: the
// form has one for all.
func decisionOf(r *http.Request) (d quipu.Decision, err error) {
	reason, err := because(r)
	if err != nil {
		return d, err
	}
	d.Verdict, d.Reason = quipu.Verdict(r.PostFormValue("verdict")), string(reason)
	switch d.Verdict {
	case quipu.Done, quipu.Resolve:
		if field(r, "result") == "" { // what that means is said by the verdict
			break
		}
		if d.Result, err = jsonOf(r, "result", ""); err != nil {
			return d, err
		}
	case quipu.Fail:
		d.Message = cmp.Or(field(r, "message"), d.Reason)
		if code := r.PostFormValue("code"); code != "" {
			if d.Code, err = strconv.Atoi(code); err != nil || d.Code < 400 || d.Code > 599 {
				return d, bad("code %.20q: use 400 to 599", code)
			}
		}
	}
	if key := field(r, "effect"); key != "" && (d.Verdict == quipu.Done || d.Verdict == quipu.Retry) {
		if d.Effect, err = journal.ParseDigest(key); err != nil {
			return d, bad("effect %.80q: its key has 64 hexadecimal digits", key)
		}
	}
	return d, nil
}

// interrupt ends one job.
func (c *console) interrupt(r *http.Request, job quipu.Job) (page, said string, err error) {
	reason, err := because(r)
	if err != nil {
		return "", "", err
	}
	ended, err := c.end(r, job, string(reason))
	said = "the interrupt is on its way: an engine ends the job"
	if ended {
		said = "nothing was done: this job has ended already"
	}
	return jobPath(job.ID), said, err
}

// end interrupts a job, and no other that has its key by now. ended says that it had ended.
func (c *console) end(r *http.Request, job quipu.Job, reason string) (ended bool, err error) {
	opts := []quipu.InterruptOption{quipu.Reason(reason), quipu.Who(c.who(r))}
	if r.PostFormValue("descend") != "" {
		opts = append(opts, quipu.Descend(true))
	}
	done, err := c.rt.Interrupt(r.Context(), job, opts...)
	return done.Closed, err
}

// export downloads the journal of one job, for journal-verify.
func (c *console) export(w http.ResponseWriter, r *http.Request) {
	id, err := journal.ParseJobID(r.PathValue("id"))
	if err != nil {
		c.fail(w, r, bad("%v", err))
		return
	}
	if _, err := c.rt.Job(r.Context(), quipu.Job{ID: id}); err != nil {
		c.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exportWait)
	defer cancel()
	download(w, "job-"+id.String()+".jsonl")
	out := export.NewWriter(&access.Steady{ResponseWriter: w})
	if err := c.reader.Export(ctx, id, out); err == nil {
		err = out.Flush()
		if err == nil {
			return
		}
	}
	panic(http.ErrAbortHandler) // so that nobody takes what is there for the whole
}

// download names the file that a browser keeps.
func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("Cache-Control", "no-store")
}
