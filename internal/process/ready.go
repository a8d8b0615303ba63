package process

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

// Check says whether this process can do its work, as quipu.Runtime.Check does.
func (p *Process) Check(ctx context.Context) error {
	for _, holds := range p.facts() {
		if err := holds(ctx); err != nil {
			return err
		}
	}
	return nil
}

// facts are all that a process needs to be ready, in the order in which one explains the next: what
// the servers answer, and then what the process has met.
func (p *Process) facts() []func(context.Context) error {
	return []func(context.Context) error{p.works, p.atHome, p.hasDatabase, p.hasNATS, p.hasStreams, p.goesOn}
}

// works: Run neither is starting nor drains.
func (p *Process) works(context.Context) error {
	if !p.ran.Load() {
		return nil
	}
	select {
	case <-p.ready:
	default:
		return fmt.Errorf("%w: it is starting", ErrNotReady)
	}
	if p.drains.Load() {
		return fmt.Errorf("%w: it drains, or has ended", ErrNotReady)
	}
	return nil
}

// atHome: the database is that of the space (S13).
func (p *Process) atHome(context.Context) error { return p.elsewhere() }

// checkKey is a key that no job has. Looking it up shows that the database answers.
const checkKey = "\x7fcheck"

func (p *Process) hasDatabase(ctx context.Context) error {
	if _, err := p.Store.FindJob(ctx, checkKey); err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	return nil
}

func (p *Process) hasNATS(ctx context.Context) error {
	if p.Bus == nil {
		return nil
	}
	if err := p.Bus.Answers(ctx); err != nil {
		return fmt.Errorf("%w: NATS does not answer", ErrNotReady)
	}
	return nil
}

// hasStreams: an engine has the streams of the space.
func (p *Process) hasStreams(ctx context.Context) error {
	if p.Bus == nil || !p.ran.Load() || !slices.Contains(p.cfg.Roles, RoleEngine) {
		return nil
	}
	if err := p.Bus.Streams(ctx); err != nil {
		return fmt.Errorf("%w: the streams of the space cannot be had: %w", ErrNotReady, err)
	}
	return nil
}

// goesOn: the process has no trouble that stops it.
func (p *Process) goesOn(context.Context) error {
	for _, x := range p.troubles() {
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
func (p *Process) troubles() []store.Trouble {
	all := p.Store.Troubles()
	add := func(kind, name, text, cause string, since time.Time) {
		all = append(all, store.Trouble{
			Kind: kind, Name: name, Text: text, Cause: wire.CutTextTo(cause, maxCause),
			Since: collation.Micros(since.UnixMicro()), Stops: true,
		})
	}
	if why := p.Store.Another(); why != nil {
		add(health.KindAnother, "database", "the database is another one than the space's", why.Error(), time.Now())
	}
	if since, why := p.session.Failing(); why != nil && time.Since(since) >= sessionAfter {
		add(health.KindSession, "database", "the process cannot renew its session in the database", why.Error(), since)
	}
	if since, why := p.Committer.Failing(); why != nil {
		add(health.KindCommit, "database", "nothing that the process decides can be committed", why.Error(), since)
	}
	if busy := p.Committer.Busy(); busy != nil {
		kind := health.KindSlow
		if busy.Deciding {
			kind = health.KindBusy
		}
		add(kind, p.cfg.Name, busy.String(), "", time.Now().Add(-busy.For))
	}
	if t := p.unleft.Load(); t != nil && time.Since(time.UnixMicro(int64(t.Since))) >= sessionAfter {
		all = append(all, *t)
	}
	if p.Bus != nil {
		for _, x := range p.Bus.Troubles() {
			all = append(all, store.Trouble{
				Kind: string(x.Kind), Name: x.Name, Queue: x.Queue, Text: x.Text,
				Cause: wire.CutTextTo(x.Cause, maxCause),
				Since: collation.Micros(x.Since.UnixMicro()), Stops: x.Stops(),
			})
		}
	}
	return health.Order(all)
}

// tells are the troubles that the others are told. The message that an engine is busy with they see
// by its id.
func (p *Process) tells() []store.Trouble {
	return slices.DeleteFunc(p.troubles(), func(x store.Trouble) bool { return x.Kind == health.KindBusy })
}
