package access

import (
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
)

// Problem is an error in a response, as RFC 9457 has it. Its Code is stable: programs read it,
// people read the Detail.
type Problem struct {
	Type   string `json:"type"` // always about:blank: the Code says more
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Faults are what is wrong with a definition of a flow, in the order of their places.
	Faults []Fault `json:"faults,omitempty"`
}

// Fault is one thing that is wrong with a text, or likely to be. Line and Column are its place, from 1.
type Fault struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"` // keys, with points between
	Text    string `json:"text,omitempty"`
	Message string `json:"message"`
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

// programs is where programs ask, below the root of the server.
const programs = "/api/"

// page is a problem for who looks at the console: it has the style of its pages.
var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{{.Title}} · Quipu</title><link rel="stylesheet" href="/assets/console.css"></head>
<body><main id="main"><h1>{{.Title}}</h1><p class="bad" role="alert">{{.Detail}}</p><p>{{.Status}} <code>{{.Code}}</code></p></main></body></html>
`))

// Answer answers a request with the problem: with a page where a browser asks for one of the
// console, otherwise as Write does.
func (p *Problem) Answer(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, programs) || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		p.Write(w)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_ = page.Execute(w, p) // the caller may have gone
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

// Codes returns the codes of the problems of a Guard.
func Codes() []string {
	return []string{
		CodeUnauthenticated, CodeForbidden, CodeCrossOrigin, CodeWrongHost, CodeTooMany, CodeBusy, CodeUnavailable,
	}
}
