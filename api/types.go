package api

import (
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// StartRequest is the body of a start. Delay is a duration such as 90s.
type StartRequest struct {
	Flow    string          `json:"flow"`
	Version string          `json:"version,omitempty"`
	Key     string          `json:"key,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Delay   string          `json:"delay,omitempty"`
	At      *time.Time      `json:"at,omitempty"`
	Tags    []string        `json:"tags,omitempty"`
}

// Started is the answer to a start. Start is new or already.
type Started struct {
	Key   string `json:"key"`
	Job   string `json:"job"` // its id
	Start string `json:"start"`
}

// Page is a page of a list of jobs. Next is the cursor of the next page, "" for the last one.
type Page struct {
	Jobs []view.Summary `json:"jobs"`
	Next string         `json:"next,omitempty"`
}

// Counts are numbers of jobs by state, as quipu.JobCounts has them.
type Counts struct {
	Jobs   map[string]int64 `json:"jobs"`
	Looked int64            `json:"looked"`
	Cut    bool             `json:"cut"`
}

// Outcome says how a job stands for who waits. Ended says that waiting is over: the job has ended,
// or is quarantined and never ends by itself. DeadLetters are set where it waits for a person.
// Hidden says that the output and the data of the error are not shown.
type Outcome struct {
	Key         string            `json:"key"`
	Job         string            `json:"job"` // its id
	State       string            `json:"state"`
	Ended       bool              `json:"ended"`
	Code        int               `json:"code,omitempty"`
	Output      json.RawMessage   `json:"output,omitempty"`
	Error       *view.Failure     `json:"error,omitempty"`
	Hidden      bool              `json:"hidden,omitempty"`
	DeadLetters []view.DeadLetter `json:"dead_letters,omitempty"`
}

// Messages is a page of all the messages that a journal names. Next is the cursor of the next page, "" for
// the last one; so it is for the next two.
type Messages struct {
	Messages []view.Message `json:"messages"`
	Next     string         `json:"next,omitempty"`
}

// Events is a page of the events that a journal tells.
type Events struct {
	Events []view.Event `json:"events"`
	Next   string       `json:"next,omitempty"`
}

// Trace is a tree with a page of its spans.
type Trace struct {
	view.Tree

	Next string `json:"next,omitempty"`
}

// Letters is a page of dead letters. Next is the cursor of the next page, "" for the last one.
type Letters struct {
	DeadLetters []view.DeadLetter `json:"dead_letters"`
	Next        string            `json:"next,omitempty"`
}

// DecideRequest is the body of a decision on a dead letter, as quipu.Decision has it.
type DecideRequest struct {
	Verdict string          `json:"verdict"`
	Effect  string          `json:"effect,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Code    int             `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// SignalRequest is the body of a signal. All sends it to everybody who waits now; Keep is a
// duration such as 24h.
type SignalRequest struct {
	Topic   string          `json:"topic"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Code    int             `json:"code,omitempty"`
	All     bool            `json:"all,omitempty"`
	Keep    string          `json:"keep,omitempty"`
}

// Signalled is the answer to a signal, as quipu.SignalResult has it.
type Signalled struct {
	State     string `json:"state"`
	Duplicate bool   `json:"duplicate"`
	Reached   int    `json:"reached"`
}

// InterruptRequest is the body of an interrupt. NoThrow ends the job as completed.
type InterruptRequest struct {
	Code    int    `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Descend bool   `json:"descend,omitempty"`
	NoThrow bool   `json:"no_throw,omitempty"`
}

// Interrupted is the answer to an interrupt, as quipu.InterruptResult has it.
type Interrupted struct {
	Key       string `json:"key"`
	Job       string `json:"job"`
	Duplicate bool   `json:"duplicate"`
	Closed    bool   `json:"closed"`
}

// ResumeRequest is the body of a resume. From is the activity to resume from, "" for the one that failed.
type ResumeRequest struct {
	From   string `json:"from,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// BulkResumeRequest is the body of a resume of many jobs: of those that Jobs names by their ids, at most
// MaxLimit, or without any of those that the parameters of the request select, as in a list: one page of
// them. The reason is required.
type BulkResumeRequest struct {
	Jobs   []string `json:"jobs,omitempty"`
	From   string   `json:"from,omitempty"`
	Reason string   `json:"reason"`
}

// BulkInterruptRequest is the body of an interrupt of many jobs, as a BulkResumeRequest.
type BulkInterruptRequest struct {
	Jobs    []string `json:"jobs,omitempty"`
	Code    int      `json:"code,omitempty"`
	Reason  string   `json:"reason"`
	Descend bool     `json:"descend,omitempty"`
	NoThrow bool     `json:"no_throw,omitempty"`
}

// Acted is the answer to a bulk act: what became of each job of the page, and the cursor of the next page.
type Acted struct {
	Jobs []ActedOn `json:"jobs"`
	Next string    `json:"next,omitempty"`
}

// ActedOn is one job of a bulk act. Without Did and Problem there was nothing to do.
type ActedOn struct {
	Key     string          `json:"key"`
	Job     string          `json:"job"` // its id
	Did     bool            `json:"did"`
	Problem *access.Problem `json:"problem,omitempty"`
}

// Resumed is the answer to a resume: the new job.
type Resumed struct {
	Key        string `json:"key"`
	Job        string `json:"job"` // its id
	Generation int64  `json:"generation"`
}

// ForkRequest is the body of a fork. At is the entry to go on from, from 1; Key is that of the new job.
type ForkRequest struct {
	At     int64  `json:"at"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
}

// Forked is the answer to a fork: the new job.
type Forked struct {
	Key string `json:"key"`
	Job string `json:"job"` // its id
}

// Verified is what the checks of journal-verify found in a job. Violation is the first one.
type Verified struct {
	Key       string  `json:"key"`
	Job       string  `json:"job"`
	State     string  `json:"state"`
	OK        bool    `json:"ok"` // no check is violated
	Violation string  `json:"violation,omitempty"`
	Entries   int64   `json:"entries"`
	Head      string  `json:"head"`
	Checks    []Check `json:"checks"`
}

// Check is one check of a verification: its rule, what it is about, and proved, violated or not
// proved.
type Check struct {
	Rule   string `json:"rule"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Note   string `json:"note,omitempty"`
}

// DeployRequest is the body of a deployment: the text of a definition, YAML or JSON. Activate lets new jobs
// take a new version; nil is true.
type DeployRequest struct {
	Definition string `json:"definition"`
	Activate   *bool  `json:"activate,omitempty"`
}

// ActivateRequest is the body of an activation: it has no members.
type ActivateRequest struct{}

// Deployed is the answer to a deployment. Warnings are what is likely to be a mistake.
type Deployed struct {
	view.Deployed

	Warnings []access.Fault `json:"warnings,omitempty"`
}

// Flows are the deployed versions of all flows.
type Flows struct {
	Flows []view.FlowVersion `json:"flows"`
}

// moment is a time in JSON, nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// id is the text of an id, "" for none.
func id(j journal.JobID) string {
	if j.IsZero() {
		return ""
	}
	return j.String()
}
