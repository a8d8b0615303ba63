package quipu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
)

// ErrNotReady is wrapped by the errors of Check about a process that takes no work now.
var ErrNotReady = errors.New("the process takes no work")

// Check says whether this process can do its work, for a readiness probe. The database must
// answer, NATS must answer where it is configured, and Run, if it was called, must neither be
// starting nor draining (ErrNotReady). The database must be the one that the space was accepted
// in (ErrAnotherDatabase, which comes with ErrNotReady). A process that runs an engine must also
// have the JetStream streams of the space; those that are missing are made. What the process
// commits must go on: it must not have been busy with one message for 2 s, or have waited for the
// database for 10 s, and neither its session nor its commits may have failed for 2 s (ErrNotReady). The
// settings of the database that were checked at the start must still hold, and new connections must be
// able to write. No stream may refuse the messages of this process, and an engine
// finds no stream or consumer that breaks the promise. A topic that has its part of a stream is no
// reason: only its requests wait. `quipu why`, `quipu top` and the console say the same. ctx bounds it.
func (rt *Runtime) Check(ctx context.Context) error {
	for _, holds := range rt.facts() {
		if err := holds(ctx); err != nil {
			return err
		}
	}
	return nil
}

// facts are all that a process needs to be ready, in the order in which one explains the next: what
// the servers answer, and then what the process has met.
func (rt *Runtime) facts() []func(context.Context) error {
	return []func(context.Context) error{rt.works, rt.atHome, rt.hasDatabase, rt.hasNATS, rt.hasStreams, rt.goesOn}
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

// goesOn: the process has no trouble that stops it.
func (rt *Runtime) goesOn(context.Context) error {
	for _, x := range rt.troubles() {
		if x.Stops {
			if x.Cause != "" {
				return fmt.Errorf("%w: %s: %w", ErrNotReady, x.Text, errors.New(x.Cause))
			}
			return fmt.Errorf("%w: %s", ErrNotReady, x.Text)
		}
	}
	return nil
}

const (
	// sessionAfter is how long the session may fail to be renewed before that is a trouble.
	sessionAfter = 2 * time.Second
	// maxCause bounds the cause of a trouble, bytes.
	maxCause = 1 << 10
)

// troubles are what keeps this process from its work, as far as it knows without asking anybody, the
// worst first.
func (rt *Runtime) troubles() []store.Trouble {
	all := rt.store.Troubles()
	add := func(kind, name, text, cause string, since time.Time) {
		all = append(all, store.Trouble{
			Kind: kind, Name: name, Text: text, Cause: wire.CutTextTo(cause, maxCause), Since: collation.Micros(since.UnixMicro()), Stops: true,
		})
	}
	if why := rt.store.Another(); why != nil {
		add(health.KindAnother, "database", "the database is another one than the space's", why.Error(), time.Now())
	}
	if since, why := rt.session.Failing(); why != nil && time.Since(since) >= sessionAfter {
		add(health.KindSession, "database", "the process cannot renew its session in the database", why.Error(), since)
	}
	if since, why := rt.committer.Failing(); why != nil {
		add(health.KindCommit, "database", "nothing that the process decides can be committed", why.Error(), since)
	}
	if busy := rt.committer.Busy(); busy != nil {
		kind := health.KindSlow
		if busy.Deciding {
			kind = health.KindBusy
		}
		add(kind, rt.cfg.Name, busy.String(), "", time.Now().Add(-busy.For))
	}
	if t := rt.unleft.Load(); t != nil && time.Since(time.UnixMicro(int64(t.Since))) >= sessionAfter {
		all = append(all, *t)
	}
	if rt.bus != nil {
		for _, x := range rt.bus.Troubles() {
			all = append(all, store.Trouble{
				Kind: string(x.Kind), Name: x.Name, Queue: x.Queue, Text: x.Text, Since: collation.Micros(x.Since.UnixMicro()), Stops: x.Stops(),
			})
		}
	}
	return health.Order(all)
}

// tells are the troubles that the others are told. The message that an engine is busy with they see
// by its id.
func (rt *Runtime) tells() []store.Trouble {
	return slices.DeleteFunc(rt.troubles(), func(x store.Trouble) bool { return x.Kind == health.KindBusy })
}
