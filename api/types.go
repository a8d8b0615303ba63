package api

import (
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
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

// Summary is a job in a list.
type Summary struct {
	Key        string     `json:"key"`
	Job        string     `json:"job"` // its id
	Generation int64      `json:"generation"`
	Flow       string     `json:"flow"`
	Version    string     `json:"version"`
	State      string     `json:"state"`
	Semaphore  int64      `json:"semaphore"` // open obligations
	Entries    int64      `json:"entries"`   // of its main chain
	Tags       []string   `json:"tags,omitempty"`
	Started    time.Time  `json:"started"`
	Closed     *time.Time `json:"closed,omitempty"`
}

func summary(j *quipu.JobSummary) Summary {
	return Summary{
		Key: j.Job.Key, Job: j.Job.ID.String(), Generation: j.Generation, Flow: j.Flow, Version: j.Version,
		State:     string(j.State),
		Semaphore: j.Open, Entries: j.Entries, Tags: j.Tags, Started: j.Started.UTC(), Closed: moment(j.Closed),
	}
}

// Page is a page of a list of jobs. Next is the cursor of the next page, "" for the last one.
type Page struct {
	Jobs []Summary `json:"jobs"`
	Next string    `json:"next,omitempty"`
}

// Counts are numbers of jobs by state, as quipu.JobCounts has them.
type Counts struct {
	Jobs   map[string]int64 `json:"jobs"`
	Looked int64            `json:"looked"`
	Cut    bool             `json:"cut"`
}

// Failure is an error of a job.
type Failure struct {
	Class   string          `json:"class"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// failure leaves the data out of what is shown to those who may not see payloads.
func failure(f *journal.Failure, payloads bool) *Failure {
	if f == nil {
		return nil
	}
	out := &Failure{Class: f.Class, Message: f.Message}
	if payloads {
		out.Data = f.Data
	}
	return out
}

// Outcome says how a job stands for who waits. Ended says that waiting is over: the job has ended,
// or is quarantined and never ends by itself. DeadLetters are set where it waits for a person.
// Hidden says that the output and the data of the error are not shown.
type Outcome struct {
	Key         string          `json:"key"`
	Job         string          `json:"job"` // its id
	State       string          `json:"state"`
	Ended       bool            `json:"ended"`
	Code        int             `json:"code,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *Failure        `json:"error,omitempty"`
	Hidden      bool            `json:"hidden,omitempty"`
	DeadLetters []DeadLetter    `json:"dead_letters,omitempty"`
}

// Job is the state of a job. Expires is when it is removed.
type Job struct {
	Summary
	Ended       bool            `json:"ended"`
	Code        int             `json:"code,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *Failure        `json:"error,omitempty"`
	Hidden      bool            `json:"hidden,omitempty"` // as in Outcome
	Expires     *time.Time      `json:"expires,omitempty"`
	Trace       string          `json:"trace,omitempty"`
	Parent      *Parent         `json:"parent,omitempty"`
	Resumes     string          `json:"resumes,omitempty"`
	ResumedBy   string          `json:"resumed_by,omitempty"`
	Activities  []Activity      `json:"activities"`
	Messages    []Message       `json:"messages"`
	Waits       []Wait          `json:"waits"`
	DeadLetters []DeadLetter    `json:"dead_letters"`
}

// Parent is the activity that started a job.
type Parent struct {
	Job      string `json:"job"`
	Activity string `json:"activity"`
	Address  string `json:"address"`
}

// Activity is one pass of an activity.
type Activity struct {
	Activity string `json:"activity"`
	Address  string `json:"address"`
	Ledger   string `json:"ledger"`
	Code     int    `json:"code,omitempty"`
	Child    string `json:"child,omitempty"`
}

// Message is an open message of a job.
type Message struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Activity string     `json:"activity,omitempty"`
	Address  string     `json:"address"`
	Topic    string     `json:"topic,omitempty"`
	Element  int        `json:"element"`
	Turn     int        `json:"turn"`
	Attempt  int        `json:"attempt"`
	Sent     *time.Time `json:"sent,omitempty"`
	Due      *time.Time `json:"due,omitempty"`
	Held     string     `json:"held,omitempty"`
	Holder   string     `json:"holder,omitempty"`
}

// Wait is an open wait for a signal.
type Wait struct {
	Activity string    `json:"activity"`
	Address  string    `json:"address"`
	Topic    string    `json:"topic"`
	Key      string    `json:"key"`
	Since    time.Time `json:"since"`
	Repeat   bool      `json:"repeat"`
	Signals  int       `json:"signals"`
}

// DeadLetter is a message that cannot go on by itself.
type DeadLetter struct {
	ID       int64     `json:"id"`
	Key      string    `json:"key,omitempty"`
	Job      string    `json:"job,omitempty"`
	Flow     string    `json:"flow,omitempty"`
	Topic    string    `json:"topic,omitempty"`
	State    string    `json:"state"`
	Kind     string    `json:"kind,omitempty"`
	Activity string    `json:"activity,omitempty"`
	Address  string    `json:"address,omitempty"`
	Ledger   string    `json:"ledger,omitempty"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
	At       time.Time `json:"at"`
}

func letter(d *quipu.DeadLetter) DeadLetter {
	return DeadLetter{
		ID: d.ID, Key: d.Job.Key, Job: id(d.Job.ID), Flow: d.Flow, Topic: d.Topic, State: string(d.State),
		Kind: string(d.Kind), Activity: d.Activity,
		Address: d.Address, Ledger: d.Ledger, Reason: string(d.Reason), Message: d.Message, At: d.At.UTC(),
	}
}

func letters(all []quipu.DeadLetter) []DeadLetter {
	out := make([]DeadLetter, len(all))
	for i := range all {
		out[i] = letter(&all[i])
	}
	return out
}

// Letters is a page of dead letters. Next is the cursor of the next page, "" for the last one.
type Letters struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	Next        string       `json:"next,omitempty"`
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

// FlowVersion is a deployed version of a flow.
type FlowVersion struct {
	Flow     string    `json:"flow"`
	Version  string    `json:"version"`
	Digest   string    `json:"digest"`
	Active   bool      `json:"active"` // new jobs take it
	Deployed time.Time `json:"deployed"`
}

// Flows are the deployed versions of all flows.
type Flows struct {
	Flows []FlowVersion `json:"flows"`
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
