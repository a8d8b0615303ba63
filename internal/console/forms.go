package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// field is a text of a form.
func field(r *http.Request, name string) string { return strings.TrimSpace(r.PostFormValue(name)) }

// because is the reason of an act, which the journal keeps.
func because(r *http.Request) (quipu.Reason, error) {
	reason := field(r, "reason")
	if reason == "" {
		return "", bad("say why: the reason is written to the journal")
	}
	return quipu.Reason(reason), nil
}

// jsonOf is a field with JSON; empty: otherwise.
func jsonOf(r *http.Request, name, otherwise string) (json.RawMessage, error) {
	text := field(r, name)
	if text == "" {
		text = otherwise
	}
	if !json.Valid([]byte(text)) {
		return nil, bad("the %s is no JSON: %.80s", name, text)
	}
	return json.RawMessage(text), nil
}

// acting serves an act on one job: what it does returns the page that follows, and what that says.
func (c *console) acting(act func(r *http.Request, job quipu.Job) (page, said string, err error)) http.Handler {
	return c.posted(func(w http.ResponseWriter, r *http.Request) {
		id, err := journal.ParseJobID(r.PathValue("id"))
		if err != nil {
			c.fail(w, r, bad("%v", err))
			return
		}
		page, said, err := act(r, quipu.Job{ID: id})
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.done(w, r, page, said)
	})
}

func jobPath(id journal.JobID) string { return "/jobs/" + id.String() }

// resume goes on with a job that failed or was interrupted, from what failed or from an activity that
// was chosen. The job is meant by its id, so that no later one of its key is resumed.
func (c *console) resume(r *http.Request, job quipu.Job) (page, said string, err error) {
	reason, err := because(r)
	if err != nil {
		return "", "", err
	}
	options := []quipu.ResumeOption{reason, quipu.Who(c.who(r))}
	if from := field(r, "from"); from != "" {
		options = append(options, quipu.From(from))
	}
	next, err := c.rt.Resume(r.Context(), job, options...)
	return jobPath(next.ID), "it goes on as this job, the next generation of the key", err
}

// fork begins a job under another key that goes on from an entry of a job.
func (c *console) fork(r *http.Request, job quipu.Job) (page, said string, err error) {
	reason, err := because(r)
	if err != nil {
		return "", "", err
	}
	at, err := strconv.ParseInt(field(r, "at"), 10, 64)
	if err != nil || at < 1 {
		return "", "", bad("at %.20q: entries count from 1", field(r, "at"))
	}
	next, err := c.rt.Fork(r.Context(), job, at, field(r, "key"), reason, quipu.Who(c.who(r)))
	return jobPath(next.ID), fmt.Sprintf("it goes on from entry %d of the other job", at), err
}

// signal sends a signal to what a job waits for.
func (c *console) signal(r *http.Request, job quipu.Job) (page, said string, err error) {
	payload, err := jsonOf(r, "payload", "null")
	if err != nil {
		return "", "", err
	}
	options := []quipu.SignalOption{quipu.Who(c.who(r))}
	if text := field(r, "code"); text != "" {
		code, err := strconv.Atoi(text)
		if err != nil {
			return "", "", bad("code %.20q: use a number, such as 200", text)
		}
		options = append(options, quipu.Code(code))
	}
	sent, err := c.rt.Signal(r.Context(), field(r, "topic"), field(r, "key"), payload, options...)
	said = "the signal has come to whoever waited the longest"
	if sent.State == quipu.SignalKept {
		said = "nobody waits for the signal any more: it is kept for a day"
	}
	return jobPath(job.ID), said, err
}

// start starts a job of a flow.
func (c *console) start(w http.ResponseWriter, r *http.Request) {
	input, err := jsonOf(r, "input", "{}")
	if err != nil {
		c.fail(w, r, err)
		return
	}
	all, err := c.rt.StartMany(r.Context(), []quipu.StartRequest{{
		Flow: r.PathValue("name"), Version: field(r, "version"), Key: field(r, "key"), Input: input, Who: c.who(r),
	}})
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	said := "the job has begun"
	if all[0].Job.Existing {
		said = "it had begun before: same flow, key and input"
	}
	c.done(w, r, jobPath(all[0].Job.ID), said)
}

// activate lets new jobs of a flow take a version.
func (c *console) activate(w http.ResponseWriter, r *http.Request) {
	name, version := r.PathValue("name"), field(r, "version")
	if err := c.rt.Operator().Activate(r.Context(), name, version, quipu.Who(c.who(r))); err != nil {
		c.fail(w, r, err)
		return
	}
	c.done(w, r, flowPath(name, version), "new jobs take version "+version)
}

func flowPath(name, version string) string {
	return "/flows/" + url.PathEscape(name) + "?version=" + url.QueryEscape(version)
}

// deploy deploys a definition.
func (c *console) deploy(w http.ResponseWriter, r *http.Request) {
	f, err := flow.Parse("the definition", []byte(r.PostFormValue("definition")))
	if err != nil {
		c.fail(w, r, bad("%v", err))
		return
	}
	done, err := c.rt.Operator().Deploy(r.Context(), f, r.PostFormValue("activate") != "", quipu.Who(c.who(r)))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	said := "deployed, and new jobs take it"
	switch {
	case !done.Fresh:
		said = "it was deployed already, with this content"
	case !done.Active:
		said = "deployed; new jobs take it once it is activated"
	}
	c.done(w, r, flowPath(f.Name(), f.Version()), said)
}

// sketch is an input to begin with: the members that a schema names, with what they may be.
func sketch(definition []byte) string {
	var d struct {
		Input *schema `json:"input"`
	}
	if json.Unmarshal(definition, &d) != nil || d.Input == nil {
		return "{}"
	}
	text, err := json.MarshalIndent(d.Input.example(0), "", "  ")
	if err != nil {
		return "{}"
	}
	return string(text)
}

// schema is what a sketch reads of a JSON Schema.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	Const      any                `json:"const"`
	Default    any                `json:"default"`
}

// maxSketch bounds how deep a sketch goes.
const maxSketch = 6

func (s *schema) example(depth int) any {
	switch {
	case s == nil || depth > maxSketch:
		return nil
	case s.Default != nil:
		return s.Default
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	switch kind := s.Type; {
	case kind == "object" || s.Properties != nil:
		out := map[string]any{}
		for name, p := range s.Properties {
			out[name] = p.example(depth + 1)
		}
		return out
	case kind == "array":
		if s.Items == nil {
			return []any{}
		}
		return []any{s.Items.example(depth + 1)}
	case kind == "string":
		return ""
	case kind == "number" || kind == "integer":
		return 0
	case kind == "boolean":
		return false
	}
	return nil
}

// maxSignals bounds the signals that the page of a job has a form for.
const maxSignals = 5

// Ends reports that the job can be interrupted.
func (p *jobPage) Ends() bool { return p.Past == nil && p.Job.State == journal.JobOpen }

// Resumes reports that the job can be resumed.
func (p *jobPage) Resumes() bool {
	failed := p.Job.State == journal.JobFailed || p.Job.State == journal.JobInterrupted
	return p.Past == nil && failed && p.Job.Ended && p.Job.ResumedBy.IsZero()
}

// Again reports that what the job was to do can be done by another one, with another input. What a job
// started waits for that one alone.
func (p *jobPage) Again() bool { return p.Resumes() && p.Job.Parent == nil }

// Forks reports that a job can go on from the entry that is shown.
func (p *jobPage) Forks() bool {
	return p.Past != nil && p.Job.Resumes.IsZero() && p.Job.ForkOf.IsZero() && p.Job.State != journal.JobQuarantined
}

// Acts reports that there is something to do.
func (p *jobPage) Acts() bool { return p.Ends() || p.Resumes() || p.Forks() }

// From are the activities from which the job can be done again: those that ran, but the trigger.
func (p *jobPage) From() (names []string) {
	for i, s := range p.Job.Graph {
		if i > 0 && s.Instances > 0 {
			names = append(names, s.Activity)
		}
	}
	return names
}

// Signals are the waits to which a signal can be sent.
func (p *jobPage) Signals() []view.Wait {
	if !p.Ends() {
		return nil
	}
	return p.Job.Waits[:min(len(p.Job.Waits), maxSignals)]
}
