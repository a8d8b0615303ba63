package quipu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
)

// Call runs one handler and waits for its result: a direct call with a record (E14). It starts a
// job of the built-in flow of the topic (flow.Call), which is deployed at first use. That job has
// a journal, three attempts, effects and durable pauses, and appears in lists like any other.
//
// key is the key of the job, unique in the space. A repeated call with the same key waits for the
// existing job or returns its result, whoever made it and however it ended. in is anything that
// encoding/json marshals; json.RawMessage is taken as it is. The job is kept for the space's
// default (ExpireDefault); after that a call with its key runs the handler again.
//
// Errors: *JobError where the handler failed or its attempts are exhausted; an error that wraps
// *ConflictError where the key has a job of another topic, flow or input; ErrKey; ErrInput, also
// for a malformed topic; with UntilParked *ParkedError where a person has to decide (otherwise
// the call goes on waiting). After ErrUnknown, or when ctx ends first, as when nobody serves the
// topic, the job may have begun; the call may be repeated.
func (rt *Runtime) Call(ctx context.Context, topic, key string, in any, opts ...WaitOption) (json.RawMessage, error) {
	job, err := rt.call(ctx, topic, key, in)
	if err != nil {
		return nil, fmt.Errorf("call %.130s: %w", topic, err)
	}
	return rt.Wait(ctx, job, opts...)
}

// call returns the job of a call, which it begins if need be.
func (rt *Runtime) call(ctx context.Context, topic, key string, in any) (Job, error) {
	ref, f, err := rt.flows.Resolve(ctx, flow.CallName, topic)
	if err != nil {
		if _, malformed := flow.Call(topic); malformed != nil {
			err = fmt.Errorf("%w: a topic is parts of a-z, 0-9, _ and - joined by dots, up to %d bytes", ErrInput, flow.MaxTopic)
		}
		return Job{}, err
	}
	input, err := marshal(in)
	if err != nil {
		return Job{}, fmt.Errorf("%w, key %.80q: %w", ErrInput, rt.proc.Kept(key), err)
	}
	if key, err = rt.checkStart(ctx, f, key, input); err != nil {
		return Job{}, err
	}
	begun := rt.proc.Begin(ctx, []store.Start{{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: input}})
	if there, is := errors.AsType[*store.AlreadyStartedError](begun[0].Err); is {
		there.SameFlow = there.SameFlow && there.Flow.Version == topic
	}
	return started(key, begun[0])
}
