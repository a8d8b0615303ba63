package quipu

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// ErrNotReady is wrapped by the errors of Check about a process that takes no work now.
var ErrNotReady = errors.New("the process takes no work")

// Check says whether this process can do its work, for a readiness probe. The database must
// answer, NATS must answer where it is configured, and Run, if it was called, must neither be
// starting nor draining (ErrNotReady). The database must be the one that the space was accepted
// in (ErrAnotherDatabase, which comes with ErrNotReady). A process that runs an engine must also
// have the JetStream streams of the space; those that are missing are made. What the process
// commits must go on: it must not have been busy with one message for 2 s, or have waited for the
// database for 10 s (ErrNotReady). No stream may refuse the messages of this process, and an engine
// finds no stream or consumer that breaks the promise. A topic that has its part of a stream is no
// reason: only its requests wait. ctx bounds it.
func (rt *Runtime) Check(ctx context.Context) error {
	for _, holds := range rt.facts() {
		if err := holds(ctx); err != nil {
			return err
		}
	}
	return nil
}

// facts are all that a process needs to be ready, in the order in which one explains the next.
func (rt *Runtime) facts() []func(context.Context) error {
	return []func(context.Context) error{rt.works, rt.atHome, rt.hasDatabase, rt.hasNATS, rt.hasStreams, rt.sends, rt.goesOn}
}

// works: Run neither is starting nor drains.
func (rt *Runtime) works(context.Context) error {
	if !rt.ran.Load() {
		return nil
	}
	select {
	case <-rt.ready:
	default:
		return fmt.Errorf("%w: it is starting", ErrNotReady)
	}
	if rt.draining.Load() {
		return fmt.Errorf("%w: it drains, or has ended", ErrNotReady)
	}
	return nil
}

// atHome: the database is that of the space (S13).
func (rt *Runtime) atHome(context.Context) error { return rt.elsewhere() }

// checkKey is a key that no job has. Looking it up shows that the database answers.
const checkKey = "\x7fcheck"

func (rt *Runtime) hasDatabase(ctx context.Context) error {
	if _, err := rt.store.FindJob(ctx, checkKey); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	return nil
}

func (rt *Runtime) hasNATS(ctx context.Context) error {
	if rt.bus == nil {
		return nil
	}
	if err := rt.bus.Answers(ctx); err != nil {
		return fmt.Errorf("%w: NATS does not answer", ErrNotReady)
	}
	return nil
}

// hasStreams: an engine has the streams of the space.
func (rt *Runtime) hasStreams(ctx context.Context) error {
	if rt.bus == nil || !rt.ran.Load() || !slices.Contains(rt.cfg.Roles, RoleEngine) {
		return nil
	}
	if err := rt.bus.Streams(ctx); err != nil {
		return fmt.Errorf("%w: the streams of the space cannot be had: %w", ErrNotReady, err)
	}
	return nil
}

// sends: no stream refuses what this process sends, and none breaks the promise.
func (rt *Runtime) sends(context.Context) error {
	if rt.bus == nil {
		return nil
	}
	for _, x := range rt.bus.Troubles() {
		if x.Stops() {
			return fmt.Errorf("%w: %s", ErrNotReady, x.Text)
		}
	}
	return nil
}

// troubles are what keeps the messages of this process from their way, the worst first.
func (rt *Runtime) troubles() []store.Trouble {
	if rt.bus == nil {
		return nil
	}
	var out, lesser []store.Trouble
	for _, x := range rt.bus.Troubles() {
		t := store.Trouble{Kind: string(x.Kind), Name: x.Name, Queue: x.Queue, Text: x.Text, Since: collation.Micros(x.Since.UnixMicro())}
		if x.Stops() {
			out = append(out, t)
		} else {
			lesser = append(lesser, t)
		}
	}
	out = append(out, lesser...)
	return out[:min(len(out), store.MaxTroubles)]
}

// goesOn: no loop of the committer has done the same for long. The text names no job, since anybody
// may ask a probe; the log and `quipu why` do.
func (rt *Runtime) goesOn(context.Context) error {
	if busy := rt.committer.Busy(); busy != nil {
		return fmt.Errorf("%w: %s", ErrNotReady, busy)
	}
	return nil
}
