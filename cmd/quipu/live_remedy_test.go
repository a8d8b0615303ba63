package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// ill is a space whose handlers fail for each job until it is mended.
type ill struct {
	*space
	world  *world.World
	mended sync.Map // by the key of the job
}

func (s *ill) is(ctx context.Context) bool {
	_, mended := s.mended.Load(workers.Info(ctx).Key)
	return mended
}

// lenient is a number. Another build of its handler, for which lenientNow stands, takes anything.
type lenient struct{}

var lenientNow atomic.Bool

func (lenient) UnmarshalJSON(text []byte) error {
	var n int
	if err := json.Unmarshal(text, &n); err != nil && !lenientNow.Load() {
		return err
	}
	return nil
}

func (s *ill) handlers() *workers.Registry {
	reg := workers.New()
	handle := func(topic string, ill func(context.Context) (any, error), well any) {
		workers.Handle(reg, topic, func(ctx context.Context, _ any) (any, error) {
			if s.is(ctx) {
				return well, nil
			}
			return ill(ctx)
		})
	}
	gives := func(v any) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return v, nil }
	}
	handle("maker", gives(map[string]any{"n": "one", "again": true}), map[string]any{"n": 1, "again": false, "id": 7})
	handle("panics", func(context.Context) (any, error) { panic("no till") }, nil)
	handle("slow", func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, nil)
	handle("errs", func(context.Context) (any, error) { return nil, errors.New("the line is busy") }, nil)
	workers.Handle(reg, "typed", func(context.Context, struct{ N int }) (any, error) { return nil, nil })
	workers.Handle(reg, "lenient", func(context.Context, struct{ N lenient }) (any, error) { return nil, nil })
	workers.HandleDurable(reg, "sleeps", func(ctx context.Context, _ any) (any, error) {
		name := "a"
		if workers.Info(ctx).Turn > 1 && !s.is(ctx) {
			name = "b"
		}
		return nil, workers.Sleep(ctx, name, time.Millisecond)
	})
	workers.Handle(reg, "cut", cutOff)
	workers.Handle(reg, "reads", func(ctx context.Context, _ any) (any, error) {
		if s.is(ctx) {
			return call[any](ctx)
		}
		return call[int](ctx)
	})
	workers.Handle(reg, "doubts", s.doubts)
	return reg
}

func call[T any](ctx context.Context) (T, error) {
	return effects.Do(ctx, "call", func(context.Context) (none T, err error) { return none, errors.New("connection cut off") }, effects.Guarded)
}

// doubts makes a call that its verifier does not find, in a second attempt.
func (s *ill) doubts(ctx context.Context, _ any) (any, error) {
	verify := effects.VerifierFunc(func(ctx context.Context, _ effects.Question) (effects.Answer, error) {
		return effects.Answer{State: effects.StateNotDone}, nil
	})
	out, err := effects.Do(ctx, "call", func(context.Context) (int, error) { return 1, nil }, effects.Guarded,
		effects.Verify(verify, effects.Human))
	if err == nil && workers.Info(ctx).Attempt == 1 {
		return nil, errors.New("after the call")
	}
	return out, err
}

// reasons reads why, and wants at most two clauses before what a person can do.
func (s *ill) reasons(key string) []view.Reason {
	s.t.Helper()
	var out because
	require.NoError(s.t, json.Unmarshal([]byte(s.ok("", "why", key, "-o", "json")), &out))
	for _, r := range out.Reasons {
		if len(r.Remedies) > 0 {
			require.LessOrEqual(s.t, strings.Count(r.Text, "; "), 1, r.Text)
		}
	}
	return out.Reasons
}

// remedy waits until why offers a remedy with this condition, and returns it with its reason.
func (s *ill) remedy(key, first string) (text string, m view.Remedy) {
	s.t.Helper()
	// Nothing tells that why says something else now: it is asked.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, r := range s.reasons(key) {
			for _, m := range r.Remedies {
				if m.First == first && m.Command != "" {
					return r.Text, m
				}
			}
		}
	}
	require.Fail(s.t, "no such remedy", "%s: %q\n%s", key, first, s.ok("", "why", key))
	return "", m
}

// follow gives the command of a remedy as it stands. Only JSON stands for what nobody but a person knows.
func (s *ill) follow(command, known string) {
	s.t.Helper()
	words := strings.Fields(strings.Replace(command, "JSON", known, 1))
	require.Equal(s.t, "quipu", words[0])
	s.ok("", words[1:]...)
}

// run has another process take a topic.
func (s *ill) run(topic string) func() {
	return func() {
		reg := workers.New()
		workers.Handle(reg, topic, func(context.Context, any) (any, error) { return nil, nil })
		cfg := s.world.Config()
		cfg.Workers = reg
		s.world.Serve(cfg)
	}
}

// exhaust marks the request of a topic as if its handler had killed its process as often as it may.
func (s *ill) exhaust(topic string) {
	db, err := pgx.Connect(s.t.Context(), s.env["QUIPU_POSTGRES"])
	require.NoError(s.t, err)
	defer func() { _ = db.Close(s.t.Context()) }()
	require.Eventually(s.t, func() bool {
		tag, err := db.Exec(s.t.Context(), "UPDATE quipu_default.dispatches SET rev = rev + 1, runs = 21, next_at = 1 WHERE topic = $1", topic)
		require.NoError(s.t, err)
		return tag.RowsAffected() == 1
	}, time.Minute, 20*time.Millisecond)
}

// version deploys a version of a flow; rest is what stands behind its trigger.
func (s *ill) version(name, version, rest string) {
	s.t.Helper()
	s.deployText(name, "flow: "+name+"\nversion: \""+version+"\"\nactivities:\n  start: {type: trigger}\n"+rest)
}

// one is a flow of one worker, without a second attempt.
func one(topic, more string) string {
	return "  step: {type: worker, topic: " + topic + ", retry: {attempts: 1}" + more + "}\ntransitions: {start: [step]}"
}

// made is a flow whose step takes what maker gave.
func made(topic, input, transitions string) string {
	return "  make: {type: worker, topic: maker}\n  step: {type: worker, topic: " + topic + ", input: " + input +
		", retry: {attempts: 1}}\ntransitions: {start: [make], make: [" + transitions + "]}"
}

// cure is a class of failure, and what why offers for it.
type cure struct {
	flow, rest string // its key is that of the job
	before     func() // what makes it fail
	says       string // of the reason
	first      string // what has to be so
	mend       func() // makes it so; nil: the handlers are mended
	known      string // for JSON
	ends       string // the key of the job that ends then; "": the same
}

// cures has a case for each class of failure that why tells apart.
func (s *ill) cures() []cure {
	better := func(flow, rest string) func() { return func() { s.version(flow, "2", rest) } }
	nothing := func() {}
	const again = "if make gives another result now"
	return []cure{
		{flow: "panic", rest: one("panics", ""), says: "panic: no till, at ", first: "mend the handler of panics that panics"},
		{flow: "errors", rest: "  step: {type: worker, topic: errs, retry: {attempts: 2, backoff: 1ms}}\ntransitions: {start: [step]}", says: "after 2 attempts: the line is busy", first: "mend what failed"},
		{flow: "timeout", rest: one("slow", ", timeout: 2s"), says: "an attempt of step has 2 s", first: "let the handler of slow end within 2 s"},
		{flow: "within", rest: one("late.within", ", within: 2s"), says: "its topic is late.within", first: "run a worker of late.within that answers within 2 s", mend: s.run("late.within")},
		{flow: "unserved", rest: one("late", ""), says: "needs a handler of late", first: "run a worker that has one; these are served", mend: s.run("late")},
		{flow: "child", rest: "  step: {type: await, flow: nowhere}\ntransitions: {start: [step]}", says: "child/step-", first: "mend what failed", mend: func() { s.nowhere() }},

		{flow: "misfit", rest: one("typed", ", input: {n: one}"), says: "does not fit into", first: "deploy a version of flow misfit that fits", mend: better("misfit", one("typed", ", input: {n: 1}")), ends: "misfit-again"},
		{flow: "misfit_handler", rest: one("lenient", ", input: {n: one}"), says: "does not fit into", first: "let the handler of lenient take this input", mend: func() { lenientNow.Store(true) }},
		{flow: "misfit_made", rest: made("typed", "{n: '${ make.output.n }'}", "step"), says: "does not fit into", first: again},
		{flow: "in_input", rest: made("typed", "{n: '${ make.output.id }'}", "step"), says: "no such key: id", first: again},
		{flow: "in_when", rest: made("typed", "{n: 1}", "{to: step, when: 'make.output.id > 1'}"), says: "no such key: id", first: again},
		{flow: "in_output", rest: one("maker", "") + "\noutput: '${ step.output.id }'", says: "the output of the flow failed", first: "if step gives another result now"},
		{flow: "in_trigger", rest: one("typed", ", input: {n: '${ start.output.n }'}"), says: "no such key: n", first: "deploy a version of flow in_trigger that fits", mend: better("in_trigger", one("typed", "")), ends: "in_trigger-again"},
		{flow: "loop", rest: "  pivot: {type: hook}\n  step: {type: worker, topic: maker}\n  again: {type: cycle, to: pivot, max: 2}\ntransitions: {start: [pivot], pivot: [step], step: [{to: again, when: step.output.again}]}", says: "its `max` is 2", first: "let what goes round end the loop"},
		{flow: "stopped", rest: "  make: {type: worker, topic: maker}\n  step: {type: interrupt}\ntransitions: {start: [make], make: [{to: step, when: make.output.again}]}", says: "was interrupted with code 410", first: again},

		{flow: "parked", rest: one("cut", ""), says: "(parked)", first: "if it was done, with its result", mend: nothing, known: `"done"`},
		{flow: "parked_not", rest: one("cut", ", input: {onretry: done}"), says: "(parked)", first: "if it was not done", mend: nothing},
		{flow: "resolved", rest: one("cut", ""), says: "(parked)", first: "to end the request as one that succeeded", mend: nothing, known: `"done"`},
		{flow: "confirm", rest: "  step: {type: worker, topic: doubts, retry: {attempts: 2, backoff: 1ms}}\ntransitions: {start: [step]}", says: "(confirm)", first: "if it was done as recorded", mend: nothing},
		{flow: "unread", rest: one("reads", ""), before: func() { s.answer("unread", `"text"`) }, says: "(result_misfit)", first: "let the handler read the result"},
		{flow: "path", rest: one("sleeps", ""), says: "(nondeterminism)", first: "run code that takes the recorded path (a change under running jobs goes behind workers.Version)"},
		{flow: "kills", rest: one("late.kills", ""), before: func() { s.exhaust("late.kills") }, says: "(runs)", first: "mend the handler", mend: nothing},
	}
}

// answer tells of the effect of a parked job what its handler cannot read.
func (s *ill) answer(key, result string) {
	_, m := s.remedy(key, "if it was done, with its result")
	s.follow(m.Command, result)
}

// What why recommends has been tried for each class of failure: the very command, after what it says
// has to be so, ends the job.
func TestRemedies(t *testing.T) {
	t.Parallel()
	s := &ill{}
	s.space, s.world = spaceOf(t, s.handlers())
	cures := s.cures()
	for _, c := range cures {
		s.version(c.flow, "1", c.rest)
		s.ok("", "start", c.flow, c.flow)
	}
	var ends []string
	for _, c := range cures {
		if c.before != nil {
			c.before()
		}
		text, m := s.remedy(c.flow, c.first)
		require.Contains(t, text, c.says, c.flow)
		if c.mend != nil {
			c.mend()
		} else {
			s.mended.Store(c.flow, true)
		}
		s.follow(m.Command, c.known)
		if c.ends != "" {
			c.flow = c.ends
		}
		ends = append(ends, c.flow)
	}
	s.run("late.kills")() // not before: an answer that comes after all is a cure, too
	s.ok("", append([]string{"wait", "--timeout", "1m"}, ends...)...)
	why := s.ok("", "why", "misfit")
	require.Contains(t, why, "quipu start misfit misfit-again-2 --input-of misfit", "a key that is free")
	require.Contains(t, why, "job misfit-again has completed since")
}

// nowhere deploys the flow of a child that never began, of which log says what it was to be.
func (s *ill) nowhere() {
	require.Regexp(s.t, "starts child child/step-[0-9a-f]+ of flow nowhere, which has not begun", s.ok("", "log", "child"))
	s.version("nowhere", "1", "transitions: {}")
}
