package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Job is Runtime.Inspect of the job that has the key, or of the one with that id. The Graph, the Effects
// and, where anything is wanted that the journal tells, what it tells of all are there in any case. Lists
// that the journal tells come in pages: of a job that goes on, the last one is of a later moment than the
// first. At keeps them at an entry.
func (c *Client) Job(ctx context.Context, key string, want view.Want) (*view.Job, error) {
	at, query := url.Values{}, url.Values{}
	if want.At > 0 {
		at.Set("at", strconv.FormatInt(want.At, 10))
		query.Set("at", at.Get("at"))
	}
	for name, is := range map[string]bool{
		"journal": want.Journal || want.Events || want.Messages || want.Tree, "reasons": want.Reasons,
		"addresses": want.Addresses,
	} {
		if is {
			query.Set(name, "true")
		}
	}
	j := &view.Job{}
	if err := c.do(ctx, call{method: http.MethodGet, path: jobPath(key, ""), query: query, to: j}); err != nil {
		return nil, err
	}
	if want.Messages {
		j.Messages = nil // the open ones are among all
	}
	for _, list := range []struct {
		name string
		is   bool
	}{{"messages", want.Messages}, {"events", want.Events}, {"trace", want.Tree}} {
		if !list.is {
			continue
		}
		if err := c.list(ctx, j, list.name, at); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// list adds all pages of a list to a job.
func (c *Client) list(ctx context.Context, j *view.Job, name string, at url.Values) error {
	query := url.Values{"at": at["at"], "limit": {strconv.Itoa(MaxItems)}, "cursor": {"0"}}
	for query.Get("cursor") != "" {
		var page struct {
			view.Tree

			Messages []view.Message `json:"messages"`
			Events   []view.Event   `json:"events"`
			Next     string         `json:"next"`
		}
		x := call{method: http.MethodGet, path: jobPath(j.ID.String(), "/"+name), query: query, to: &page}
		if err := c.do(ctx, x); err != nil {
			return err
		}
		j.Messages, j.Events = append(j.Messages, page.Messages...), append(j.Events, page.Events...)
		switch {
		case name == "trace" && j.Tree == nil:
			j.Tree = &page.Tree
		case name == "trace":
			j.Tree.Spans = append(j.Tree.Spans, page.Spans...)
		}
		query.Set("cursor", page.Next)
	}
	return nil
}

// Definition returns the canonical text of a version of a flow.
func (c *Client) Definition(ctx context.Context, flow, version string) ([]byte, error) {
	var text json.RawMessage
	path := "/flows/" + url.PathEscape(flow) + "/" + url.PathEscape(version)
	err := c.do(ctx, call{method: http.MethodGet, path: path, to: &text})
	return text, err
}

// Flows is Runtime.Flows.
func (c *Client) Flows(ctx context.Context) ([]view.FlowVersion, error) {
	var all Flows
	err := c.do(ctx, call{method: http.MethodGet, path: "/flows", to: &all})
	return all.Flows, err
}

// Deploy is Operator.Deploy of the text of a definition. Who deploys is who has the token. A definition with
// faults is flow.Faults.
func (c *Client) Deploy(ctx context.Context, definition string, activate bool) (*Deployed, error) {
	out := &Deployed{}
	body := DeployRequest{Definition: definition, Activate: &activate}
	return out, c.do(ctx, call{method: http.MethodPost, path: "/flows", body: body, to: out})
}

// Activate is Operator.Activate. Who activates is who has the token.
func (c *Client) Activate(ctx context.Context, flow, version string) error {
	path := "/flows/" + url.PathEscape(flow) + "/" + url.PathEscape(version) + "/activate"
	return c.do(ctx, call{method: http.MethodPost, path: path, body: ActivateRequest{}})
}

// Resume is Runtime.Resume of the job with the ID, from the activity; "" is the one that failed. Who
// resumes is who has the token. A job that was resumed already is quipu.ErrStale.
func (c *Client) Resume(ctx context.Context, job journal.JobID, from, reason string) (out Resumed, err error) {
	body := ResumeRequest{From: from, Reason: reason}
	err = c.do(ctx, call{method: http.MethodPost, path: jobPath(job.String(), "/resume"), body: body, to: &out})
	return out, err
}

// Fork is Runtime.Fork of the job with the ID at an entry, as a job with the key. Who forks is who has the
// token. One that cannot be forked so is quipu.ErrFork.
func (c *Client) Fork(
	ctx context.Context, job journal.JobID, at int64, key, reason string,
) (out Forked, err error) {
	body := ForkRequest{At: at, Key: key, Reason: reason}
	err = c.do(ctx, call{method: http.MethodPost, path: jobPath(job.String(), "/fork"), body: body, to: &out})
	return out, err
}

// Space is Runtime.Space.
func (c *Client) Space(ctx context.Context) (*view.Space, error) {
	s := &view.Space{}
	return s, c.do(ctx, call{method: http.MethodGet, path: "/space", to: s})
}

// Verify says what the checks of journal-verify found in a job.
func (c *Client) Verify(ctx context.Context, key string) (*Verified, error) {
	v := &Verified{}
	return v, c.do(ctx, call{method: http.MethodGet, path: jobPath(key, "/verify"), to: v})
}

// Export writes the export of a job, for journal-verify. After an error that is no problem of the API, a
// part of it may have been written.
func (c *Client) Export(ctx context.Context, key string, w io.Writer) error {
	resp, err := c.send(ctx, call{method: http.MethodGet, path: jobPath(key, "/export")})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != exportType {
		return fmt.Errorf("%s answers what the API of Quipu does not: %.80q is no %s", c.base, kind, exportType)
	}
	_, err = io.Copy(w, exportBody{resp.Body})
	return err
}

// exportBody is a body whose errors say that they are its own.
type exportBody struct{ io.Reader }

// Read implements io.Reader.
func (b exportBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the export was cut off: %w", quipu.ErrUnavailable, err)
	}
	return n, err
}
