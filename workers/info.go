package workers

import (
	"context"

	"github.com/quipu-journal/quipu/internal/work/port"
)

// Call says which request a handler's run answers. A durable function that runs for its
// compensations sees the original request, except for turn and attempt.
type Call struct {
	Space, Job, Key   string // Key is the job's
	Generation        int64
	Flow, Version     string
	Activity, DAD     string
	Element           int // index under `each`
	Topic, Request    string
	Turn              int // answers so far, suspensions included, plus 1
	Attempt, Attempts int // failed attempts so far, plus 1; the policy's limit
	TimeoutMS         int64
	Trace             string // W3C traceparent to work under, or ""
	// Root and RootGeneration name, for a job that resumes another, the first job of that
	// chain, under whose name effect keys are made. "": the job resumes none.
	Root           string
	RootGeneration int64
}

// Info returns the call that ctx belongs to; outside a job it is zero (E14). A durable
// function must not decide on Turn and Attempt, which differ from run to run.
func Info(ctx context.Context) Call {
	q := port.RequestOf(ctx)
	if q == nil {
		return Call{}
	}
	return Call{
		Space: q.Space, Job: q.Job, Key: q.Key, Generation: q.Generation, Flow: q.Flow, Version: q.Version,
		Activity: q.Activity, DAD: q.DAD, Element: q.Element, Topic: q.Topic, Request: q.Request,
		Turn: q.Turn, Attempt: q.Attempt, Attempts: q.Attempts, TimeoutMS: q.TimeoutMS, Trace: q.Trace,
		Root: q.Root, RootGeneration: q.RootGeneration,
	}
}
