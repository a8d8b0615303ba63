package flow

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// Scope gives the values that expressions mention. It is asked only for values that an
// evaluation reaches, and never for more than the Needs of the place.
type Scope interface {
	// Result returns the response of an activity, along the address of the reader (1.9);
	// false if it was not loaded, which is an error everywhere except in the flow's
	// output.
	Result(activity string) (Result, bool)
	// Job returns the job's own data.
	Job() JobInfo
	// Budget is what all evaluations over this scope may cost together. Never nil.
	Budget() *Budget
}

// Result is the response of an activity.
type Result struct {
	// Output is canonical payload JSON; nil means null. For the trigger it is
	// the job's input.
	Output []byte
	// Code is 200, or the code of the error.
	Code int
	// Error is canonical JSON, {"code":…,"message":…}, or nil.
	Error []byte
	// By is signal or timer, for a hook that waited.
	By string
	// Skipped says that the activity was skipped (1.10).
	Skipped bool
	// Ran says that the activity has ended at the reader's address. Otherwise it reads
	// like a skipped one: output and error null, code 0.
	Ran bool
	// Taken says that the result comes from an earlier generation of the job, so that
	// `output` is already applied.
	Taken bool
}

// JobInfo is the value of job in expressions.
type JobInfo struct {
	// ID is the job's key, Flow and Version its flow.
	ID, Flow, Version string
	// StartedMicros is the inception by the database's clock, in microseconds since 1970.
	StartedMicros int64
}

// activityFields and jobFields are the fields that can be mentioned.
var (
	activityFields = []string{"output", "code", "error", "skipped", "by"}
	jobFields      = []string{"id", "flow", "version", "started"}
)

// reader is the place of an expression, which decides what it may mention.
type reader struct {
	*vertex
	self    bool // the activity itself may be mentioned
	element bool // item and index may be mentioned
	signal  bool // signal may be mentioned
	alone   bool // nothing may be mentioned
}

func (k *compiler) scope(r *reader) expr.Scope { return &names{graph: k.graph, reader: r} }

// names implements expr.Scope for a place; a nil reader sees every activity.
type names struct {
	*graph
	reader *reader
}

func (n *names) Known(name string) bool {
	return n.byName[name] != nil || slices.Contains(scopeWords, name)
}

func (n *names) Whole(name string) bool { return name != "job" && slices.Contains(scopeWords, name) }

func (n *names) IsTime(r expr.Ref) bool { return r == expr.Ref{Name: "job", Field: "started"} }

func (n *names) Mention(r expr.Ref) string {
	v := n.byName[r.Name]
	switch {
	case n.reader != nil && n.reader.alone && n.Known(r.Name):
		return "this value is the same for every job and mentions nothing"
	case r.Name == "job":
		if !slices.Contains(jobFields, r.Field) {
			return fmt.Sprintf("job has no %s; it has id, flow, version and started", r.Field)
		}
		return ""
	case n.Whole(r.Name):
		return n.reader.lacks(r.Name)
	case v == nil:
		return "unknown name " + r.Name
	case r.Field == "by" && v.Type != TypeHook:
		return fmt.Sprintf("%s has no by: it is no hook", r.Name)
	case !slices.Contains(activityFields, r.Field):
		return fmt.Sprintf("an activity has no %s; it has output, code, error and skipped, and a hook has by", r.Field)
	case n.reader == nil || !n.reader.reached || !v.reached: // an unreachable activity has no ancestors to compare with
		return ""
	case v == n.reader.vertex && !n.reader.self || !n.leads(v, n.reader.vertex):
		return fmt.Sprintf("%s is not an ancestor of %s", r.Name, n.reader.Name)
	}
	return ""
}

// lacks says why a scope word may not be mentioned at a place.
func (r *reader) lacks(word string) string {
	switch {
	case word == "signal" && (r == nil || !r.signal):
		return "signal is known in the output of a hook that waits for one, nowhere else"
	case word != "signal" && (r == nil || !r.element):
		return word + " is known in the input of a worker with each, nowhere else"
	}
	return ""
}

// EvalError is an expression that failed, or whose value does not fit its place (E11). In
// a key it is an error 500 of the activity, in a condition an error 500 of the activity
// that the transition leaves; in the flow's output it fails the job.
type EvalError struct {
	// Activity is the activity that has the key or the transition; empty for the flow's
	// output.
	Activity string
	// Place is the key, or "when of the transition to …".
	Place string
	// Expression is the text of the expression; empty if the value combines several.
	Expression string
	// Err is the reason.
	Err error
	// Because is the likely cause of an error in the flow's output, an activity without
	// an output; or empty.
	Because string
}

// Error names the place, the expression and the reason.
func (e *EvalError) Error() string {
	text := e.Place
	if e.Activity != "" {
		text += " of " + e.Activity
	}
	if e.Expression != "" {
		text += ": ${ " + e.Expression + " }"
	}
	text += fmt.Sprintf(": %v", e.Err)
	if e.Because != "" {
		text += "; " + e.Because
	}
	return text
}

// Unwrap returns the reason.
func (e *EvalError) Unwrap() error { return e.Err }

// source implements expr.Source over a Scope.
type source struct {
	scope  Scope
	whole  bool   // the flow's output: a missing result counts as skipped
	item   []byte // an element and its index, in an element's input
	index  int
	signal []byte // in the output of a hook; nil for null
}

// constant is the scope of expressions that mention nothing.
type constant struct{ budget *Budget }

func (constant) Result(string) (Result, bool) { return Result{}, false }
func (constant) Job() JobInfo                 { return JobInfo{} }
func (c constant) Budget() *Budget            { return c.budget }

// Step is what the evaluations over the scope share.
func (s source) Step() *expr.Step { return s.scope.Budget().step() }

func (s source) Value(r expr.Ref) ([]byte, error) {
	switch r.Name {
	case "job":
		return jobValue(s.scope.Job(), r.Field), nil
	case "item", "index":
		if s.item == nil {
			return nil, fmt.Errorf("%s is known for an element only", r.Name)
		}
		if r.Name == "item" {
			return s.item, nil
		}
		return canonical.AppendInt(nil, int64(s.index)), nil
	case "signal":
		return orNull(s.signal), nil
	}
	result, ok := s.scope.Result(r.Name)
	if !ok && !s.whole {
		return nil, fmt.Errorf("the result of %s was not loaded", r.Name)
	}
	skipped := result.Skipped || !result.Ran
	if skipped {
		result = Result{}
	}
	switch r.Field {
	case "output":
		return orNull(result.Output), nil
	case "error":
		return orNull(result.Error), nil
	case "code":
		return canonical.AppendInt(nil, int64(result.Code)), nil
	case "by":
		if result.By == "" {
			return orNull(nil), nil
		}
		return canonical.AppendString(nil, result.By), nil
	}
	return strconv.AppendBool(nil, skipped), nil
}

func orNull(text []byte) []byte {
	if text == nil {
		return []byte("null")
	}
	return text
}

func jobValue(job JobInfo, field string) []byte {
	text := job.ID
	switch field {
	case "flow":
		text = job.Flow
	case "version":
		text = job.Version
	case "started":
		text = time.UnixMicro(job.StartedMicros).UTC().Format(time.RFC3339Nano)
	}
	return canonical.AppendString(nil, text)
}
