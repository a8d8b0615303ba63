package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Scope gives the values that expressions mention. It is asked only for what an
// evaluation comes to, never for more than the Needs of the place.
type Scope interface {
	// Result returns the response of an activity, along the address of the
	// reader (1.9); false if it has none.
	Result(activity string) (Result, bool)
	// Job returns the job's own data.
	Job() JobInfo
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
	// By is signal or timer, for a hook.
	By string
	// Skipped says that the activity was skipped (1.10).
	Skipped bool
	// Ran says that the activity has ended. It matters to the flow's output
	// only, which may name what never ran.
	Ran bool
}

// JobInfo is what expressions see as job.
type JobInfo struct {
	// ID is the job's key, Flow and Version what it runs.
	ID, Flow, Version string
	// StartedMicros is the inception by the database's clock, in microseconds
	// since 1970.
	StartedMicros int64
}

// activityFields and jobFields are what can be mentioned.
var (
	activityFields = []string{"output", "code", "error", "skipped"}
	jobFields      = []string{"id", "flow", "version", "started"}
)

// reader is the place of an expression: what it may mention depends on it.
type reader struct {
	*vertex
	self bool // the activity itself counts, too
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

func (n *names) IsTime(r expr.Ref) bool { return r == expr.Ref{Name: "job", Field: "started"} }

func (n *names) Mention(r expr.Ref) string {
	v := n.byName[r.Name]
	switch {
	case r.Name == "job":
		if !slices.Contains(jobFields, r.Field) {
			return fmt.Sprintf("job has no %s; it has id, flow, version and started", r.Field)
		}
		return ""
	case slices.Contains(scopeWords, r.Name):
		return fmt.Sprintf("%s is not known here: this build does not support each and hooks yet", r.Name)
	case v == nil:
		return "unknown name " + r.Name
	case !slices.Contains(activityFields, r.Field) && (r.Field != "by" || v.Type == TypeWorker || v.Type == TypeTrigger):
		return fmt.Sprintf("an activity has no %s; it has output, code, error and skipped", r.Field)
	case n.reader == nil || !n.reader.reached: // what is unreachable has no ancestors to compare with
		return ""
	case !v.above(n.reader.Activity) || v == n.reader.vertex && !n.reader.self:
		return fmt.Sprintf("%s is not an ancestor of %s", r.Name, n.reader.Name)
	}
	return ""
}

// EvalError is an expression that failed (E11): in an input it is an error 500
// of its activity, in a condition of the activity that the transition leaves,
// in the output the job fails.
type EvalError struct {
	// Activity is the activity whose input or transition it is; empty for the
	// flow's output.
	Activity string
	// Place is "input", "when of the transition to …" or "output".
	Place string
	// Expression is the text of the expression.
	Expression string
	// Err is the reason.
	Err error
}

// Error names the place, the expression and the reason.
func (e *EvalError) Error() string {
	place := e.Place
	if e.Activity != "" {
		place += " of " + e.Activity
	}
	return fmt.Sprintf("%s: ${ %s }: %v", place, e.Expression, e.Err)
}

// Unwrap returns the reason.
func (e *EvalError) Unwrap() error { return e.Err }

// source implements expr.Source over a Scope.
type source struct {
	scope Scope
	whole bool // the flow's output: what never ran is null and skipped
}

func (s source) Value(r expr.Ref) ([]byte, error) {
	if r.Name == "job" {
		return jobValue(s.scope.Job(), r.Field), nil
	}
	result, ok := s.scope.Result(r.Name)
	if !ok && !s.whole {
		return nil, fmt.Errorf("the result of %s was not loaded", r.Name)
	}
	skipped := result.Skipped || s.whole && !(ok && result.Ran)
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
	}
	if skipped {
		return []byte("true"), nil
	}
	return []byte("false"), nil
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
