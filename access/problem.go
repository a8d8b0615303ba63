package access

import (
	"encoding/json"
	"net/http"
)

// Problem is an error in a response, as RFC 9457 has it. Its Code is stable: programs read it,
// people read the Detail.
type Problem struct {
	Type   string `json:"type"` // always about:blank: the Code says more
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Error is the detail with the code.
func (p *Problem) Error() string { return p.Detail + " (" + p.Code + ")" }

// NewProblem makes a problem. Status is the HTTP status.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller may have gone
}

// The codes of the problems of a Guard.
const (
	CodeUnauthenticated = "unauthenticated"   // 401: no token, or none that holds
	CodeForbidden       = "forbidden"         // 403: the role does not cover it
	CodeCrossOrigin     = "cross_origin"      // 403: another site made the browser send it
	CodeWrongHost       = "wrong_host"        // 421: the Host is no name of this machine
	CodeTooMany         = "too_many_requests" // 429: too many requests of one caller at a time
	CodeBusy            = "busy"              // 503: too many requests at a time
	CodeUnavailable     = "unavailable"       // 503: tokens cannot be looked up now
)
