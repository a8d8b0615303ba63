package quipu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/misfit"
	"github.com/quipu-journal/quipu/internal/process"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/tokens"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// DefaultSpace is the space of a Config that names none.
const DefaultSpace = "default"

// Role is a part that a process can play in a space (T8).
type Role string

// The roles. Any number of processes may have each role, and a space needs every role in some
// process: without schedule no job starts by the clock; without retention closed jobs stay for
// good.
const (
	RoleEngine   Role = process.RoleEngine   // decides and commits; sends due dispatch rows
	RoleWorkers  Role = process.RoleWorkers  // runs the handlers of Config.Workers
	RoleSchedule Role = process.RoleSchedule // starts the jobs of flows with a schedule; needs no NATS
	// removes expired jobs (J7, W11); needs the rights of retention and owner, and no NATS
	RoleRetention Role = process.RoleRetention
)

// AllRoles returns the roles of a Config that names none.
func AllRoles() []Role { return []Role{RoleEngine, RoleWorkers, RoleSchedule, RoleRetention} }

// Runtime is a connection to one space. Its methods are safe for concurrent
// use. Close it when Run has returned.
type Runtime struct {
	cfg    Config
	proc   *process.Process
	tokens *tokens.Looks
	// Those of the process.
	store     *postgres.Store
	flows     *engine.Flows
	committer *engine.Committer
	reader    *inspect.Reader
}

// Open connects to Postgres, checks its settings (S7), migrates the schema unless NoMigrate is
// set, and connects to NATS where a URL is given. It fails with ErrConfig, with ErrPreflight where
// a setting would break the promise, with ErrUnavailable where a server cannot be reached, with
// ErrSchema under NoMigrate where the space is of another build or not there (the error names the
// spaces that are), or with the server's own error.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	return open(ctx, cfg, below.Mode{})
}

func open(ctx context.Context, cfg Config, how below.Mode) (*Runtime, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := process.Open(ctx, cfg.process(how))
	if err != nil {
		return nil, err
	}
	rt := &Runtime{
		cfg: cfg, proc: p, tokens: tokens.New(p.Store), store: p.Store, flows: p.Flows, committer: p.Committer,
	}
	rt.reader = inspect.New(p.Store, p.Kept, rt.elsewhere)
	return rt, nil
}

// elsewhere tells of a topic whether a worker takes its requests that is no process of the space, and
// whether the queue of the topic could be seen.
func (rt *Runtime) elsewhere(ctx context.Context) func(topic string) (is, seen bool) {
	all, _ := rt.Topics(ctx) // nothing is seen then
	return func(topic string) (is, seen bool) {
		at := slices.IndexFunc(all, func(t Topic) bool { return t.Name == topic })
		return at >= 0 && all[at].Elsewhere, at >= 0 && all[at].Queued != QueueUnknown
	}
}

// Run works for the space until ctx ends. Then it drains: it takes no new work, and running
// batches and handlers get Config.Drain to finish (T10). A second call returns ErrRun.
func (rt *Runtime) Run(ctx context.Context) error { return rt.proc.Run(ctx) }

// Ready returns a channel that is closed when Run takes work: the session of the process is open.
func (rt *Runtime) Ready() <-chan struct{} { return rt.proc.Ready() }

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
func (rt *Runtime) Check(ctx context.Context) error { return rt.proc.Check(ctx) }

// Close ends the connections and every open Wait. Call it after Run has returned.
func (rt *Runtime) Close() { rt.proc.Close() }

// Process is a live process of the space: it has renewed its session within its lease.
type Process struct {
	Name   string
	Build  string
	Roles  []Role
	Topics []string // the topics it has handlers for
	Since  time.Time
	Seen   time.Time // last renewal, by the database's clock
}

// Processes lists the live processes that work for the space by NATS, the oldest first, at most 1
// 000. It does not know clients, processes with only the roles schedule and retention, and
// workers in other languages.
func (rt *Runtime) Processes(ctx context.Context) ([]Process, error) {
	views, err := rt.store.Processes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Process, len(views))
	for i, v := range views {
		roles := make([]Role, len(v.Roles))
		for n, r := range v.Roles {
			roles[n] = Role(r)
		}
		all[i] = Process{
			Name: v.Name, Build: v.Build, Roles: roles, Topics: slices.DeleteFunc(v.Topics, func(topic string) bool {
				return topic == ""
			}),
			Since: time.UnixMicro(int64(v.Since)), Seen: time.UnixMicro(int64(v.Renewed)),
		}
	}
	return all, nil
}

// QueueUnknown is the Queued of a topic whose queue cannot be read here.
const QueueUnknown = -1

// Topic is what a space has of one topic now.
type Topic struct {
	Name string
	// Queued are the requests that wait in NATS for a process; QueueUnknown without NATS, or without the
	// rights of an engine there. Oldest is how long the oldest of them has been there, 0 where that
	// was not looked at.
	Queued int64
	Oldest time.Duration
	// Running are the requests that processes hold. A request of less than a third of the ack wait
	// is held only where the process took it over from its own commit (W7).
	Running int64
	// Rate is how many runs of its handlers have ended a second, over the last minute: attempts,
	// however they ended. Workers in other languages, and processes that have ended, are not in it.
	Rate float64
	// Longest is how long ago the request was sent whose run has gone on longest; 0 for none.
	Longest time.Duration
	// Early are the runs of its handlers that began before what caused them had committed, as
	// workers.Early lets them; nil where no process serves it so.
	Early *view.EarlyRuns
	// Processes are the names of the living processes that have a handler for it, the oldest first.
	// A worker in another language is none of them.
	Processes []string
	// Elsewhere says that none of Processes serves it and that somebody asks NATS for its requests: a
	// worker in another language. It is false where Queued is QueueUnknown.
	Elsewhere bool
}

// queuesWait bounds what is asked of NATS about queues: who looks while it is away sees the rest.
const queuesWait = 2 * time.Second

// Served says that somebody takes the requests of the topic.
func (t *Topic) Served() bool { return len(t.Processes) > 0 || t.Elsewhere }

// Topics lists the topics that living processes serve, and those with requests that wait or run, by
// name. Of the latter it has the 100 with most. It is for people: what it says is past already.
func (rt *Runtime) Topics(ctx context.Context) ([]Topic, error) {
	g, err := rt.store.Gauges(ctx)
	if err != nil {
		return nil, err
	}
	living, err := rt.store.Processes(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*Topic{}
	of := func(name string) *Topic {
		if all[name] == nil {
			all[name] = &Topic{Name: name, Queued: QueueUnknown}
		}
		return all[name]
	}
	for name, n := range g.Running {
		of(name).Running, of(name).Longest = n.N, n.Age
	}
	serving(living, of)
	if rt.proc.Bus != nil {
		asking, cancel := context.WithTimeout(ctx, queuesWait)
		defer cancel()
		if q, err := rt.proc.Bus.Queues(asking); err == nil {
			for _, t := range all {
				t.Queued = 0
			}
			for _, t := range q.Topics {
				x := of(t.Topic)
				x.Queued, x.Oldest = t.Queued, t.Oldest
				x.Elsewhere = t.Pulled && len(x.Processes) == 0
			}
		}
	}
	out := make([]Topic, 0, len(all))
	for _, t := range all {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// serving adds what living processes say of the topics that they serve.
func serving(living []store.ProcessView, of func(topic string) *Topic) {
	weights := map[string]float64{} // of the mean run of a topic
	for i := range living {
		p := &living[i]
		for n, name := range p.Topics {
			if name == "" { // it serves that one no more
				continue
			}
			t, ran := of(name), int64(0)
			if n < len(p.Ran) {
				ran = p.Ran[n]
			}
			t.Processes = append(t.Processes, p.Name)
			t.Rate += float64(ran) / session.RanSpan.Seconds()
			at := slices.Index(p.Process.Early, name)
			if at < 0 {
				continue
			}
			if t.Early == nil {
				t.Early = &view.EarlyRuns{}
			}
			if at >= len(p.Doing.Early) {
				continue // it has not told yet
			}
			e, x := t.Early, &p.Doing.Early[at]
			e.Kept, e.Late, e.Dropped = e.Kept+x.Kept, e.Late+x.Late, e.Dropped+x.Dropped
			if x.Mean > 0 {
				weight := float64(max(ran, 1))
				weights[name] += weight
				e.Mean += (x.Mean.Seconds() - e.Mean) * weight / weights[name]
			}
		}
	}
}

// ExpireDefault returns how long closed jobs are kept whose flow has no `expire`; 0 means for
// good. A new space has 720 h.
func (rt *Runtime) ExpireDefault(ctx context.Context) (time.Duration, error) {
	return rt.store.ExpireDefault(ctx)
}

// SetExpireDefault sets that time: flow.MinExpire to flow.MaxExpire, or 0. A process reads the value
// with its first flow, so processes that run keep the old one until they restart. It needs the
// rights of the owner.
func (rt *Runtime) SetExpireDefault(ctx context.Context, d time.Duration) error {
	return rt.store.SetExpireDefault(ctx, d)
}

// PrivateKeys says whether the space keeps digests of the keys of jobs and signals, instead of the
// keys (S15).
func (rt *Runtime) PrivateKeys(ctx context.Context) (bool, error) { return rt.store.PrivateKeys(ctx) }

// KeepPrivateKeys lets the space keep digests, for good: "sha256:" and the SHA-256, in hexadecimal,
// over the space and the key. Every method takes a key or its digest, and returns the digest. It is
// for a new space: one that has jobs or signals is refused with ErrRejected. Open the space again
// after it; processes that were running begin no job any more until they restart. It needs the
// rights of the owner.
func (rt *Runtime) KeepPrivateKeys(ctx context.Context) error { return rt.store.SetPrivateKeys(ctx) }

// CreateRoles creates the space's group roles with least rights (S8): owner, engine, operator,
// worker, client, retention and verifier. The login of a worker is bound to topics by `quipu grant
// worker`. It needs CREATEROLE. Repeat it after each migration.
func (rt *Runtime) CreateRoles(ctx context.Context) error { return rt.store.Roles(ctx) }

// OpenCheck says what a build has, for CheckOpen. A zero field is not compared.
type OpenCheck struct {
	// Workers has the handlers of the build.
	Workers *workers.Registry
	// Elsewhere lists the topics that other builds serve, and workers in other languages. They
	// count only with Workers.
	Elsewhere []string
	// Flows are those that the build deploys.
	Flows []*flow.Flow
	// Progress is called after each job, with the numbers of jobs and of their requests that were
	// looked at so far. nil: nobody wants to know.
	Progress func(jobs, requests int64)
}

// Misfit is something of the open jobs that does not fit a build.
type Misfit struct {
	Job               Job // zero: Err is about the version, not about one job
	Flow, Version     string
	Activity, Address string // of the instance; empty for none
	Topic             string // of the request; empty for none
	Err               error
}

// String says it in one line.
func (m Misfit) String() string {
	of := fmt.Sprintf("flow %s version %s", m.Flow, m.Version)
	if m.Job.Key != "" {
		of = fmt.Sprintf("job %q of %s", m.Job.Key, of)
	}
	if m.Activity != "" {
		of += ", " + m.Activity
	}
	if m.Address != "" {
		of += " at " + m.Address
	}
	return of + ": " + m.Err.Error()
}

// CheckOpen yields what of the open jobs does not fit a build (O12). A pipeline calls it in the
// new binary before it replaces the old one:
//
//   - a version of a flow that an open job runs on, and that this build cannot read;
//   - a topic that an open job can still come to, and that the build does not serve: once for
//     each version, with the first job;
//   - an open request that its handler does not fit: a durable function
//     takes another path than the recorded one, or a handler cannot read its input;
//   - a flow of the build that is deployed with other content under the same version;
//   - a child that has not begun and whose input the new version of its flow refuses.
//
// Nothing is written. One job is in memory at a time, and each costs a round trip, each request
// of a durable function two more. A job that goes on meanwhile is looked at again; one that begins
// meanwhile is not. After an error it ends.
func (rt *Runtime) CheckOpen(ctx context.Context, c OpenCheck) iter.Seq2[Misfit, error] {
	enough := errors.New("the caller has enough")
	return func(yield func(Misfit, error) bool) {
		k := misfit.Check{
			Store: rt.store, Compiled: rt.flows, Workers: c.Workers, Elsewhere: c.Elsewhere, Flows: c.Flows,
			Progress: c.Progress,
			Say: func(m misfit.Misfit) error {
				out := Misfit{
					Job: Job{ID: m.Job, Key: m.Key}, Flow: m.Flow, Version: m.Version, Activity: m.Activity,
					Address: m.Address, Topic: m.Topic, Err: m.Err,
				}
				if !yield(out, nil) {
					return enough
				}
				return nil
			},
		}
		if err := k.Run(ctx); err != nil && !errors.Is(err, enough) {
			yield(Misfit{}, fmt.Errorf("check the open jobs: %w", err))
		}
	}
}

func init() {
	below.Open = func(ctx context.Context, cfg any, how below.Mode) (any, error) {
		return open(ctx, cfg.(Config), how)
	}
	below.Reader = func(runtime any) *inspect.Reader { return runtime.(*Runtime).reader }
	below.Of = func(runtime any) *postgres.Store { return runtime.(*Runtime).store }
	below.Witness = func(ctx context.Context, runtime any) (newest store.Mark, foreign, err error) {
		return runtime.(*Runtime).proc.Witness(ctx)
	}
	below.Observer = func(runtime any) observer.Observer { return runtime.(*Runtime).cfg.Observer }
}
