package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Client asks the API of a space. Its methods answer as those of a quipu.Runtime do, with the same
// errors; each also is an *access.Problem. Its methods are safe for concurrent use.
type Client struct {
	base, token string
	http        *http.Client
}

// Limits of a Client.
const (
	maxAnswer = 64 << 20 // bytes of an answer
	maxConns  = 64       // at a time; more calls wait for one
	waitPause = time.Second
)

// NewClient makes a client. base is the URL of the server, without Path; the token may be "".
func NewClient(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("the URL of the API is such as https://quipu.example:8400, and has no password")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = maxConns
	return &Client{
		base: strings.TrimSuffix(strings.TrimSuffix(base, "/"), Path) + Path, token: token,
		http: &http.Client{Transport: transport},
	}, nil
}

// call is one request and the answer that is wanted.
type call struct {
	method, path string
	query        url.Values
	key          string // idempotency key
	body, to     any
}

// remoteError is a problem of the API, and the error of the façade that it stands for.
type remoteError struct {
	problem *access.Problem
	as      error
}

// Error is the text of the problem.
func (e *remoteError) Error() string { return "the API: " + e.problem.Error() }

// Unwrap gives both.
func (e *remoteError) Unwrap() []error {
	if e.as == nil {
		return []error{e.problem}
	}
	return []error{e.problem, e.as}
}

// errorOf is the error that an answer stands for.
func errorOf(p *access.Problem) error {
	e := &remoteError{problem: p}
	for _, k := range known {
		if k.code == p.Code {
			e.as = k.err
		}
	}
	switch p.Code {
	case CodeFlow:
		e.as = faultsIn(p)
	case CodeConflict:
		e.as = &quipu.ConflictError{}
	case CodeUnknown:
		e.as = quipu.ErrUnknown
	case CodeMalformed:
		e.as = quipu.ErrInput
	case access.CodeUnavailable, access.CodeBusy, access.CodeTooMany, CodeTimeout, CodeSlow:
		e.as = quipu.ErrUnavailable
	}
	return e
}

// send sends a request, and returns an answer that is none of an error.
func (c *Client) send(ctx context.Context, x call) (*http.Response, error) {
	var sent io.Reader
	if x.body != nil {
		text, err := json.Marshal(x.body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", quipu.ErrInput, err)
		}
		sent = bytes.NewReader(text)
	}
	address := c.base + x.path
	if len(x.query) > 0 {
		address += "?" + x.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, x.method, address, sent)
	if err != nil {
		return nil, err
	}
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if x.key != "" {
		r.Header.Set("Idempotency-Key", x.key)
	}
	resp, err := c.http.Do(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &awayError{err}
	case resp.StatusCode < http.StatusBadRequest:
		return resp, nil
	}
	text, err := whole(resp)
	if err != nil {
		return nil, err
	}
	p := &access.Problem{}
	if json.Unmarshal(text, p) != nil || p.Code == "" {
		return nil, fmt.Errorf("%s answers %s: it is not the API of Quipu, or something stands before it", c.base, resp.Status)
	}
	return nil, errorOf(p)
}

// whole reads an answer to its end.
func whole(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the answer of the API was cut off: %w", quipu.ErrUnknown, err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer of the API is over %d bytes, the limit: ask for less", maxAnswer)
	}
	return text, nil
}

func (c *Client) do(ctx context.Context, x call) error {
	resp, err := c.send(ctx, x)
	if err != nil {
		return err
	}
	text, err := whole(resp)
	switch {
	case err != nil:
		return err
	case x.to == nil && resp.StatusCode == http.StatusNoContent:
		return nil
	case x.to == nil:
		return fmt.Errorf("%w: %s answers %s where the API of Quipu answers 204: something stands before it", quipu.ErrUnknown, c.base, resp.Status)
	}
	if err := json.Unmarshal(text, x.to); err != nil {
		return fmt.Errorf("%s answers what the API of Quipu does not: %w", c.base, err)
	}
	return nil
}

func jobPath(key, rest string) string { return "/jobs/" + url.PathEscape(key) + rest }

// Start is Runtime.StartMany of one job.
func (c *Client) Start(ctx context.Context, r quipu.StartRequest) (quipu.Job, error) {
	input, err := json.Marshal(r.Input)
	if err != nil {
		return quipu.Job{}, fmt.Errorf("%w: %w", quipu.ErrInput, err)
	}
	body := StartRequest{Flow: r.Flow, Version: r.Version, Key: r.Key, Input: input, At: moment(r.At), Tags: r.Tags}
	if r.Delay != 0 {
		body.Delay = r.Delay.String()
	}
	var s Started
	if err := c.do(ctx, call{method: http.MethodPost, path: "/jobs", body: body, to: &s}); err != nil {
		if there, is := errors.AsType[*quipu.ConflictError](err); is {
			there.Job.Key = r.Key
		}
		return quipu.Job{}, err
	}
	return jobNamed(s.Key, s.Job, s.Start == "already")
}

// jobNamed reads the id of an answer.
func jobNamed(key, text string, existing bool) (quipu.Job, error) {
	n, err := journal.ParseJobID(text)
	return quipu.Job{ID: n, Key: key, Existing: existing}, err
}

// Wait is Runtime.Wait for the job with a key. It asks again until ctx ends, also while the server
// is away.
func (c *Client) Wait(ctx context.Context, key string, untilParked bool) (json.RawMessage, error) {
	query := url.Values{"timeout": {DefaultWait.String()}, "until_parked": {strconv.FormatBool(untilParked)}}
	for {
		var out Outcome
		err := c.do(ctx, call{method: http.MethodGet, path: jobPath(key, "/wait"), query: query, to: &out})
		switch {
		case errors.Is(err, quipu.ErrUnavailable), errors.Is(err, quipu.ErrUnknown):
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(waitPause):
			}
		case err != nil:
			return nil, err
		case out.Ended, untilParked && len(out.DeadLetters) > 0:
			return out.result()
		}
	}
}

// result is what Runtime.Wait returns for it.
func (o *Outcome) result() (json.RawMessage, error) {
	job, err := jobNamed(o.Key, o.Job, true)
	switch {
	case err != nil:
		return nil, err
	case !o.Ended:
		return nil, &quipu.ParkedError{Job: job, DeadLetters: o.DeadLetters}
	case o.State != string(journal.JobCompleted):
		e := &quipu.JobError{Job: job, State: journal.JobState(o.State), Code: o.Code}
		if f := o.Error; f != nil {
			e.Cause = &journal.Failure{Class: f.Class, Message: f.Message, Data: f.Data, Stack: f.Stack}
		}
		return nil, e
	}
	return o.Output, nil
}

// Jobs is Runtime.Jobs; next is the cursor of the next page, "" after the last one.
func (c *Client) Jobs(ctx context.Context, f quipu.JobFilter) (page []view.Summary, next string, err error) {
	var p Page
	err = c.do(ctx, call{method: http.MethodGet, path: "/jobs", query: selects(f), to: &p})
	return p.Jobs, p.Next, err
}

// selects are the parameters of a filter.
func selects(f quipu.JobFilter) url.Values {
	q := url.Values{}
	for _, tag := range f.Tags {
		q.Add("tag", tag)
	}
	for _, s := range f.States {
		q.Add("state", string(s))
	}
	give(q, f.Limit, map[string]string{
		"flow": f.Flow, "version": f.Version, "prefix": f.Prefix, "waits": f.Waits, "parent": id(f.Parent), "cursor": f.Before, "from": timeText(f.From), "to": timeText(f.To),
	})
	return q
}

// ResumeMany resumes the jobs that the request names, or without any a page of those that the filter
// selects: f.Limit, 100 by default. Next of the answer goes into f.Before for the next page.
func (c *Client) ResumeMany(ctx context.Context, f quipu.JobFilter, r BulkResumeRequest) (out Acted, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/bulk/resume", query: selects(f), body: r, to: &out})
	return out, err
}

// InterruptMany is as ResumeMany, for an interrupt.
func (c *Client) InterruptMany(ctx context.Context, f quipu.JobFilter, r BulkInterruptRequest) (out Acted, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/bulk/interrupt", query: selects(f), body: r, to: &out})
	return out, err
}

// give sets what is given of the parameters of a list.
func give(q url.Values, limit int, texts map[string]string) {
	for name, text := range texts {
		if text != "" {
			q.Set(name, text)
		}
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Signal is Runtime.Signal, or SignalAll. The idempotency key may be "".
func (c *Client) Signal(ctx context.Context, s SignalRequest, idempotency string) (out Signalled, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/signals", key: idempotency, body: s, to: &out})
	return out, err
}

// Interrupt is Runtime.Interrupt of the job with the ID. The idempotency key may be "".
func (c *Client) Interrupt(
	ctx context.Context, job journal.JobID, r InterruptRequest, idempotency string,
) (out Interrupted, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: jobPath(job.String(), "/interrupt"), key: idempotency, body: r, to: &out})
	return out, err
}

// DeadLetters is Operator.DeadLetters; of Jobs it takes at most one.
func (c *Client) DeadLetters(ctx context.Context, f quipu.DeadLetterFilter) ([]view.DeadLetter, error) {
	q := url.Values{"all": {strconv.FormatBool(f.All)}}
	give(q, f.Limit, map[string]string{
		"flow": f.Flow, "topic": f.Topic, "reason": string(f.Reason), "prefix": f.Prefix, "from": timeText(f.From), "to": timeText(f.To),
	})
	if f.Before != 0 {
		q.Set("cursor", strconv.FormatInt(f.Before, 10))
	}
	if len(f.Jobs) > 0 {
		q.Set("job", f.Jobs[0].String())
	}
	var p Letters
	err := c.do(ctx, call{method: http.MethodGet, path: "/dead-letters", query: q, to: &p})
	return p.DeadLetters, err
}

// Decide is Operator.Decide. Who decides is who has the token, whatever the decision says.
func (c *Client) Decide(ctx context.Context, d quipu.Decision) error {
	body := DecideRequest{Verdict: string(d.Verdict), Code: d.Code, Message: d.Message, Reason: d.Reason}
	if d.Effect != (journal.Digest{}) {
		body.Effect = d.Effect.String()
	}
	if d.Result != nil {
		var err error
		if body.Result, err = json.Marshal(d.Result); err != nil {
			return fmt.Errorf("%w: %w", quipu.ErrInput, err)
		}
	}
	return c.do(ctx, call{method: http.MethodPost, path: fmt.Sprintf("/dead-letters/%d/decision", d.DeadLetter), body: body})
}

// awayError says that the API cannot be reached. It is an ErrUnavailable, and says nothing of a database.
type awayError struct{ err error }

func (e *awayError) Error() string   { return "the API does not answer: " + e.err.Error() }
func (e *awayError) Unwrap() []error { return []error{quipu.ErrUnavailable, e.err} }
