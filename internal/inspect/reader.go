package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Source is what a Reader reads from.
type Source interface {
	store.Reader

	// FindJob is that of store.Client, as the others are.
	FindJob(ctx context.Context, key string) (journal.JobID, error)
	// Job reads what the tables have of a job.
	Job(ctx context.Context, id journal.JobID) (*store.JobView, error)
	// Flow reads a definition.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// JobEffects lists the effects of a job.
	JobEffects(ctx context.Context, job journal.JobID) ([]store.JobEffect, error)
	// DeadLetters lists dead letters, the newest first.
	DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error)
	// Awaited says what open jobs wait for.
	Awaited(ctx context.Context, ids []journal.JobID) (map[journal.JobID][]store.Awaited, error)
	// Outcomes says how jobs ended.
	Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error)
	// Failing says in which flows jobs have failed since then.
	Failing(ctx context.Context, since collation.Micros) ([]store.Failing, error)
	// Payload returns an output that is stored beside the entries of a job.
	Payload(ctx context.Context, job journal.JobID, digest journal.Digest) ([]byte, error)
	// Processes are the living ones.
	Processes(ctx context.Context) ([]store.ProcessView, error)
	// Silent are the processes that are not heard of any more but hold work.
	Silent(ctx context.Context) ([]store.ProcessView, error)
	// Clock is that of the database: times of a job are compared with no other.
	Clock(ctx context.Context) (collation.Micros, error)
}

// Reader reads the jobs of a space. It is safe for concurrent use.
type Reader struct {
	Source

	kept      func(key string) string
	elsewhere func(ctx context.Context) func(topic string) (is, seen bool)
	shelf     shelf
	flows     flows
}

// New makes a Reader. kept is what the space keeps of a key (S15); nil: the key. elsewhere returns what
// tells of a topic whether a worker takes its requests that is no process of the space, and whether the
// queue of the topic could be seen; nil: nothing is seen.
func New(
	s Source, kept func(key string) string, elsewhere func(ctx context.Context) func(topic string) (is, seen bool),
) *Reader {
	return &Reader{Source: s, kept: kept, elsewhere: elsewhere}
}

// Errors of a Reader.
var (
	// ErrTombstone says that the job has expired and its journal was removed.
	ErrTombstone = errors.New("the job has expired: its journal was removed")
	// ErrPast says that a journal has no entry of that number.
	ErrPast = fmt.Errorf("%w: the journal has no such entry", store.ErrNotFound)
)

// LongError says that a journal is too long for what is wanted of it, and what the limit is.
type LongError struct{ text string }

// Error is its text.
func (e *LongError) Error() string { return e.text }

// Limits of what is read of one job.
const (
	// MaxHistory bounds the entries of a job whose journal can be read.
	MaxHistory = 200_000
	// MaxTrace bounds the entries of a job of which a tree of spans is made.
	MaxTrace = 50_000
	// Short is how many entries a short journal has at most.
	Short = 2000
)

// Want is what is wanted of a job.
type Want struct {
	view.Want

	// Quick leaves a journal unread that is not Short and was not read before: HistoryLeft says so.
	Quick bool
	// Lenient is content with what the tables have where the journal is not read, whatever is wanted of
	// it: if it cannot be read, HistoryError says why.
	Lenient bool
	// Hidden leaves payloads out, as Hide does, and the output of the job out of Reasons, too: who asks may
	// not see them (O11).
	Hidden bool
	// AnySize reads a journal however many bytes it has: for a process that does nothing else.
	AnySize bool
	// Zone is the time zone in sentences; nil: UTC.
	Zone *time.Location
}

// deep reports that something is wanted that only the journal has.
func (w *Want) deep() bool { return w.At > 0 || w.Journal || w.Events || w.Messages || w.Tree }

// strict reports that it fails if the journal cannot be read.
func (w *Want) strict() bool {
	return w.At > 0 || !w.Lenient && (w.Events || w.Messages || w.Tree)
}

// Find returns the job that has the key, or else the job with that id, so that earlier generations of
// a key are found: store.ErrNotFound.
func (r *Reader) Find(ctx context.Context, key string) (journal.JobID, error) {
	id, bad := journal.ParseJobID(key)
	if r.kept != nil {
		key = r.kept(key)
	}
	found, err := r.FindJob(ctx, key)
	if !errors.Is(err, store.ErrNotFound) {
		return found, err
	}
	err = fmt.Errorf("job %q: %w", key, err)
	if bad != nil {
		return journal.JobID{}, err
	}
	if _, bad := r.Source.Job(ctx, id); bad != nil {
		return journal.JobID{}, err
	}
	return id, nil
}

// Definition returns a flow version as it is stored; nil if it cannot be read, or not by this build.
func (r *Reader) Definition(ctx context.Context, name, version string) *flow.Flow {
	text, err := r.Flow(ctx, name, version)
	if err != nil {
		return nil
	}
	return r.flows.compiled(text)
}

// flow is the flow version of a job; nil if this build cannot read it. Errors: store.ErrNotFound, and of a
// definition that was changed *store.ChangedError.
func (r *Reader) flow(ctx context.Context, ref journal.FlowRef) (*flow.Flow, error) {
	text, err := r.Flow(ctx, ref.Name, ref.Version)
	if err == nil {
		err = store.SameFlow(ref, text)
	}
	if err != nil {
		return nil, err
	}
	return r.flows.compiled(text), nil
}

// Job reads a job. Errors: store.ErrNotFound; where something is wanted that only the journal has,
// also ErrTombstone, ErrPast, *LongError.
func (r *Reader) Job(ctx context.Context, id journal.JobID, want Want) (*view.Job, error) {
	v, err := r.Source.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	x := &reading{Reader: r, want: want, now: v, why: explain.Job{View: v, Zone: want.Zone, Addresses: want.Addresses}}
	if err := x.read(ctx); err != nil {
		return nil, err
	}
	if want.Hidden {
		return Hide(x.job), nil
	}
	return x.job, nil
}

// Wrong says what is wrong with the space, as far as its processes tell and s has more of it: whether
// jobs are open, gauges, topics. It fills in what s lacks of the processes.
func (r *Reader) Wrong(ctx context.Context, s *health.Sight) ([]health.Finding, error) {
	var err error
	if s.Living == nil {
		if s.Living, err = r.Processes(ctx); err != nil {
			return nil, err
		}
	}
	if s.Silent, err = r.Silent(ctx); err != nil {
		return nil, err
	}
	if s.Now.IsZero() {
		now, err := r.Clock(ctx)
		if err != nil {
			return nil, err
		}
		s.Now = time.UnixMicro(int64(now))
	}
	return health.Space(s), nil
}

// lately is how long ago jobs failed that are told of a flow.
const lately = time.Hour

// Failing are the flows whose jobs failed in the last hour and were not resumed, the last one first. now is
// by the clock of the database.
func (r *Reader) Failing(ctx context.Context, now collation.Micros) ([]view.FlowFailing, error) {
	found, err := r.Source.Failing(ctx, now-collation.Micros(lately.Microseconds()))
	all := make([]view.FlowFailing, len(found))
	for i, f := range found {
		all[i] = view.FlowFailing{Flow: f.Flow, Failed: f.N, More: f.N >= store.MaxFailed, Last: timeOf(f.Last).UTC()}
	}
	return all, err
}

// living adds to what explains a job what does not stand in its tables: the time, the living
// processes, other jobs.
func (r *Reader) living(ctx context.Context, j *explain.Job) (err error) {
	j.Find = r.finder(ctx)
	if j.Now, err = r.Clock(ctx); err != nil {
		return err
	}
	if j.Processes, err = r.Processes(ctx); err != nil {
		return err
	}
	if j.Processes == nil {
		j.Processes = []store.ProcessView{} // not nil: they were read, and there are none
	}
	if slices.ContainsFunc(j.View.Rows, func(x collation.Row) bool { return idle(&x) }) {
		awaited, err := r.Awaited(ctx, []journal.JobID{j.View.ID})
		if err != nil {
			return err
		}
		j.Cut = slices.DeleteFunc(awaited[j.View.ID], func(x store.Awaited) bool {
			return x.What != store.WaitsEffect
		})
	}
	if r.elsewhere != nil { // it is asked once, when it is needed
		all := sync.OnceValue(func() func(string) (bool, bool) { return r.elsewhere(ctx) })
		j.Elsewhere = func(topic string) (is, seen bool) { return all()(topic) }
	}
	j.Wrong, err = r.Wrong(ctx, &health.Sight{
		Living: j.Processes, Open: j.View.State == journal.JobOpen, Now: time.UnixMicro(int64(j.Now)),
	})
	return err
}

// idle says of a row that it is a request which began effects, and that no run has it.
func idle(r *collation.Row) bool {
	return r.Kind == journal.MessageRequest && r.Effects.Seq > 0 && r.Holder == "" && r.Held == "" &&
		r.NextAt != collation.Never
}

// finder looks up other jobs for sentences. It returns nil for one that cannot be read.
func (r *Reader) finder(ctx context.Context) func(journal.JobID) *store.JobSummary {
	return func(id journal.JobID) *store.JobSummary {
		v, err := r.Source.Job(ctx, id)
		if err != nil {
			return nil
		}
		return &v.JobSummary
	}
}

// AgainKey is a key for a job that does what the one with this key did not: the one that Reasons names.
func (r *Reader) AgainKey(ctx context.Context, space, key string) string {
	again, _ := explain.AgainKey(space, key, r.finder(ctx))
	return again
}

// Journal yields the entries of a job: the main chain first, then the effect chains, each by seq.
func Journal(ctx context.Context, r store.Reader, job journal.JobID) iter.Seq2[*journal.Entry, error] {
	return audited(ctx, r, job, func(*store.Stored) error { return nil })
}

// audited is Journal, of the same snapshot as the header, which it passes to header before. Its
// error ends the sequence.
func audited(
	ctx context.Context, r store.Reader, job journal.JobID, header func(*store.Stored) error,
) iter.Seq2[*journal.Entry, error] {
	return func(yield func(*journal.Entry, error) bool) {
		stopped := false
		err := r.Audit(ctx, job, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
			if err := header(s); err != nil {
				return err
			}
			for r, err := range records {
				if err != nil {
					return err
				}
				e, err := journal.Decode(r)
				if !yield(e, err) || err != nil {
					stopped = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}
