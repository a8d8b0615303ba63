package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// body is what a write reads: its members are those of an operation, each by its exact name.
type body interface{ members() map[string]any }

func (s *StartRequest) members() map[string]any {
	return map[string]any{"flow": &s.Flow, "version": &s.Version, "key": &s.Key, "input": &s.Input, "delay": &s.Delay, "at": &s.At, "tags": &s.Tags}
}

func (s *SignalRequest) members() map[string]any {
	return map[string]any{"topic": &s.Topic, "key": &s.Key, "payload": &s.Payload, "code": &s.Code, "all": &s.All, "keep": &s.Keep}
}

func (i *InterruptRequest) members() map[string]any {
	return map[string]any{"code": &i.Code, "reason": &i.Reason, "descend": &i.Descend, "no_throw": &i.NoThrow}
}

func (r *ResumeRequest) members() map[string]any {
	return map[string]any{"from": &r.From, "reason": &r.Reason}
}

func (b *BulkResumeRequest) members() map[string]any {
	return map[string]any{"jobs": &b.Jobs, "from": &b.From, "reason": &b.Reason}
}

func (b *BulkInterruptRequest) members() map[string]any {
	return map[string]any{"jobs": &b.Jobs, "code": &b.Code, "reason": &b.Reason, "descend": &b.Descend, "no_throw": &b.NoThrow}
}

func (f *ForkRequest) members() map[string]any {
	return map[string]any{"at": &f.At, "key": &f.Key, "reason": &f.Reason}
}

func (d *DeployRequest) members() map[string]any {
	return map[string]any{"definition": &d.Definition, "activate": &d.Activate}
}

func (*ActivateRequest) members() map[string]any { return nil }

func (d *DecideRequest) members() map[string]any {
	return map[string]any{"verdict": &d.Verdict, "effect": &d.Effect, "result": &d.Result, "code": &d.Code, "message": &d.Message, "reason": &d.Reason}
}

// decode reads the body of a write: one JSON object with members of its operation, each once. None
// at all is an empty one; one that was cut off is none of an operation.
func decode(r *http.Request, v any) error {
	for _, name := range []string{"Content-Type", "Idempotency-Key"} {
		if len(r.Header.Values(name)) > 1 {
			return malformed("the header " + name + " is given twice: which one counts would be a guess")
		}
	}
	if key := r.Header.Get("Idempotency-Key"); !utf8.ValidString(key) || strings.Count(key, `"`) == 1 {
		return malformed("the header Idempotency-Key is a text in UTF-8, as it is or between two quotes")
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return access.NewProblem(http.StatusUnsupportedMediaType, CodeMediaType, "the body has to be application/json")
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return unread(r, int64(len(text)), err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil
	}
	err = canonical.Object(text, v.(body).members())
	if at, is := errors.AsType[*canonical.Error](err); is {
		return malformed(cannotReadDetail + placed(at, len(text)))
	}
	return err
}

// placed says where a body is wrong, and how.
func placed(at *canonical.Error, size int) string {
	if at.Offset >= size {
		return "it ends within a value"
	}
	return fmt.Sprintf("%s (byte %d): %s", at.Path, at.Offset+1, at.Reason)
}

// unread is the problem of a body of which so many bytes came.
func unread(r *http.Request, came int64, err error) error {
	of := ""
	if r.ContentLength >= 0 {
		of = fmt.Sprintf(" of %d", r.ContentLength)
	}
	switch _, big := errors.AsType[*http.MaxBytesError](err); {
	case big:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return access.NewProblem(http.StatusRequestTimeout, CodeSlow, fmt.Sprintf("the body did not come in time: after %d%s bytes nothing more came; nothing was done", came, of))
	case ended(r.Context()) != nil:
		return ended(r.Context())
	}
	return access.NewProblem(http.StatusBadRequest, CodeIncomplete, fmt.Sprintf("the body ends after %d%s bytes; nothing was done: send all of it", came, of))
}

// ended is why the server ended a request before its answer: its token does not hold any more, or
// the server stops. nil: it did not.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if p, is := errors.AsType[*access.Problem](cause); is {
		return p
	}
	if errors.Is(cause, access.ErrStopped) {
		return access.NewProblem(http.StatusServiceUnavailable, access.CodeUnavailable, stoppedDetail)
	}
	return nil
}
