package quipu

import (
	"context"

	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/process"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/tokens"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// DefaultSpace is the space of a Config that names none.
const DefaultSpace = "default"

// Role is a part that a process can play in a space (T8).
type Role string

// The roles. Any number of processes may have each role, and a space needs every role in some
// process: without schedule no job starts by the clock; without retention closed jobs stay for
// good.
const (
	RoleEngine    Role = process.RoleEngine    // decides and commits; sends due dispatch rows
	RoleWorkers   Role = process.RoleWorkers   // runs the handlers of Config.Workers
	RoleSchedule  Role = process.RoleSchedule  // starts the jobs of flows with a schedule; needs no NATS
	RoleRetention Role = process.RoleRetention // removes expired jobs (J7, W11); needs the rights of retention and owner, and no NATS
)

// AllRoles returns the roles of a Config that names none.
func AllRoles() []Role { return []Role{RoleEngine, RoleWorkers, RoleSchedule, RoleRetention} }

// ErrClosed says that the Runtime was closed before or during the call. The job goes on.
var ErrClosed = engine.ErrClosed

// ErrRun says that Run was called twice on one Runtime. Open another one.
var ErrRun = process.ErrRun

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = process.ErrConfig

// ErrAnotherDatabase says that the server was promoted, or the database restored to an older
// point, since the process knows the space (S13). It is an ErrUnavailable: nothing is decided,
// started or leased until somebody accepts the database with `quipu recover`, or, for a promotion
// without a loss, has done so beforehand. Then a running process goes on by itself.
var ErrAnotherDatabase = store.ErrAnotherDatabase

// ErrLogin says that the database does not let this login in, or that the login has no right to
// what was asked (S8); the error says which, and what to do. It is an ErrUnavailable: nothing was
// done. But calling again does not help until somebody has changed that.
var ErrLogin = store.ErrLogin

// ErrPreflight is wrapped by the error of Open about a setting of Postgres or NATS that would
// break the promise (S7), and with ErrUnavailable by those of writing calls while a setting of Postgres
// is not any more as it was then. The error names each check and what to do; Config.Accept accepts some
// of them by their names.
var ErrPreflight = store.ErrPreflight

// ErrNotReady is wrapped by the errors of Check about a process that takes no work now.
var ErrNotReady = process.ErrNotReady

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
	return &Runtime{cfg: cfg, proc: p, tokens: tokens.New(p.Store), store: p.Store, flows: p.Flows, committer: p.Committer}, nil
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
