package quipu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/store"
)

// Call runs one handler and waits for its result: a direct call with a record
// (E14). It is a job of the built-in flow of the topic, flow.Call, which is
// deployed when it is first needed: with the journal, the retries (three attempts)
// and the effects of any job, a durable function's pauses among them, and its
// place in every list.
//
// key is the job's, and so the only one of the space: a call that is repeated with
// it waits for the job that is there, or takes its result, whoever made it and
// however it ended. in is anything that encoding/json marshals; json.RawMessage is
// taken as it is. The job is kept as long as the space says (ExpireDefault); when it has
// expired, a call with its key is a new one and runs the handler again.
//
// The error is *JobError where the handler answered with one, or its attempts are
// exhausted, as of Wait; one that wraps *ConflictError where the key has a job of
// another topic, flow or input; ErrKey; ErrInput, of the topic, too. With UntilParked it
// is *ParkedError where a person has to decide; without, the call goes on waiting. With
// ErrUnknown, and when ctx ends first (nobody may serve the topic), the job
// may have begun; the call may simply be repeated.
func (rt *Runtime) Call(ctx context.Context, topic, key string, in any, opts ...WaitOption) (json.RawMessage, error) {
	job, err := rt.call(ctx, topic, key, in)
	if err != nil {
		return nil, fmt.Errorf("call %.130s: %w", topic, err)
	}
	return rt.Wait(ctx, job, opts...)
}

// call gives the job of a call, begun now or before.
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
		return Job{}, fmt.Errorf("%w, key %.80q: %w", ErrInput, key, err)
	}
	if key, err = engine.CheckStart(f, key, input); err != nil {
		return Job{}, err
	}
	begun := rt.begin(ctx, []store.Start{{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: input}})
	if there, is := errors.AsType[*store.AlreadyStartedError](begun[0].Err); is {
		there.SameFlow = there.SameFlow && there.Flow.Version == topic
	}
	return started(key, begun[0])
}
