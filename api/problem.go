package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/inspect"
)

// The codes of problems, besides those of package access. docs/api.md says what to do.
const (
	CodeMalformed    = "malformed"              // 400: the request cannot be read
	CodeIncomplete   = "incomplete"             // 400: the body was cut off, or the connection closed
	CodeNotFound     = "not_found"              // 404: no such job, flow or dead letter
	CodeNoRoute      = "no_route"               // 404: the API has no such path
	CodeMethod       = "method_not_allowed"     // 405
	CodeSlow         = "slow_body"              // 408: the rest of the body did not come
	CodeConflict     = "conflict"               // 409: the key has a job with other content
	CodeStale        = "stale"                  // 409: somebody else has decided, or it has ended
	CodeResume       = "cannot_resume"          // 409: the detail says what to do
	CodeFork         = "cannot_fork"            // 409: the detail says what to do
	CodeExpired      = "expired"                // 410: the job's journal was removed
	CodeTooLarge     = "too_large"              // 413: the body
	CodeMediaType    = "unsupported_media_type" // 415: the body is no JSON
	CodeInput        = "invalid_input"          // 422: against the flow's schema, or a limit
	CodeFlow         = "invalid_flow"           // 422: its faults say where
	CodeTaken        = "version_taken"          // 409: the version of the flow is there with other content
	CodeKey          = "invalid_key"            // 422
	CodeRejected     = "rejected"               // 422: the database cannot store it, or an engine refused the start
	CodeLong         = "too_long"               // 422: the journal, for what is wanted of it
	CodeInternal     = "internal"               // 500: the server's log says more
	CodeUnknown      = "unknown_outcome"        // 503: it may have taken effect; repeat it with the same key
	CodeTimeout      = "timeout"                // 504: it took too long
	retryAfter       = "1"                      // seconds
	awayDetail       = "the database is away: nothing was done, try again"
	unknownDetail    = "the answer of the database was lost: it may have taken effect; repeat it with the same key"
	stoppedDetail    = "the server stops: ask again"
	internalDetail   = "the server could not do it; its log says why"
	timeoutDetail    = "it took too long; ask for less, or try again"
	cannotReadDetail = "the body cannot be read: "
)

// known are the errors of the façade that a caller can do something about, each with its problem.
// The text of the error is shown.
var known = []struct {
	err    error
	status int
	code   string
}{
	{quipu.ErrTombstone, http.StatusGone, CodeExpired},
	{quipu.ErrNotFound, http.StatusNotFound, CodeNotFound},
	{quipu.ErrStale, http.StatusConflict, CodeStale},
	{quipu.ErrResume, http.StatusConflict, CodeResume},
	{quipu.ErrFork, http.StatusConflict, CodeFork},
	{quipu.ErrVersionTaken, http.StatusConflict, CodeTaken},
	{quipu.ErrInput, http.StatusUnprocessableEntity, CodeInput},
	{quipu.ErrKey, http.StatusUnprocessableEntity, CodeKey},
	{quipu.ErrRejected, http.StatusUnprocessableEntity, CodeRejected},
	{quipu.ErrRefused, http.StatusUnprocessableEntity, CodeRejected},
}

// problemOf is the problem of an error. An error that may name users or hosts is not shown.
func problemOf(err error) *access.Problem {
	if p, ok := errors.AsType[*access.Problem](err); ok {
		return p
	}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return access.NewProblem(http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf("the body is over %d bytes, the limit: pass a reference instead", big.Limit))
	}
	if c, ok := errors.AsType[*quipu.ConflictError](err); ok {
		return access.NewProblem(http.StatusConflict, CodeConflict, c.Error())
	}
	if long, ok := errors.AsType[*inspect.LongError](err); ok {
		return access.NewProblem(http.StatusUnprocessableEntity, CodeLong, long.Error())
	}
	if wrong, ok := errors.AsType[flow.Faults](err); ok {
		return faulty(wrong)
	}
	switch {
	case errors.Is(err, quipu.ErrUnknown):
		return access.NewProblem(http.StatusServiceUnavailable, CodeUnknown, unknownDetail)
	case errors.Is(err, quipu.ErrUnavailable), errors.Is(err, quipu.ErrClosed), errors.Is(err, quipu.ErrNotReady):
		return access.NewProblem(http.StatusServiceUnavailable, access.CodeUnavailable, awayDetail)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return access.NewProblem(k.status, k.code, strings.ToValidUTF8(err.Error(), "\ufffd"))
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return access.NewProblem(http.StatusGatewayTimeout, CodeTimeout, timeoutDetail)
	}
	return access.NewProblem(http.StatusInternalServerError, CodeInternal, internalDetail)
}

// malformed is the problem of a request that cannot be read.
func malformed(detail string) error {
	return access.NewProblem(http.StatusBadRequest, CodeMalformed, detail)
}
