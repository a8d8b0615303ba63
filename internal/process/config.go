package process

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

// The roles of a process (T8); quipu.Role says what each does.
const (
	RoleEngine    = "engine"
	RoleWorkers   = "workers"
	RoleSchedule  = "schedule"
	RoleRetention = "retention"
)

// AllRoles returns the roles of a process that names none.
func AllRoles() []string { return []string{RoleEngine, RoleWorkers, RoleSchedule, RoleRetention} }

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("quipu configuration")

// ErrRun says that Run was called twice on one Process.
var ErrRun = errors.New("a Runtime runs once: Run was called on it before")

// Config is what quipu.Config says, checked and with its defaults, under the same names.
type Config struct {
	Postgres, Space   string
	NATS              *nats.Config // what an operator sets of it; nil: no server is named
	Workers           *workers.Registry
	Roles             []string
	Lanes, Committers int
	Concurrency       int
	MaxBatch          int
	HotBytes          int
	MaxConns          int

	Resend, Lease, AckWait, Drain, NATSWait, WaitLook time.Duration

	Accept      []string
	NoMigrate   bool
	Archive     string
	Name, Build string
	Observer    observer.Observer
	Logger      *slog.Logger
	Mode        below.Mode
}

// CheckNATS names the option of NATS that cannot be used, before anything is connected:
// *transport.ConfigError.
func (c Config) CheckNATS() error {
	if c.NATS == nil {
		return nil
	}
	return c.onNATS().Check()
}

// onNATS is the configuration of the bus, as far as it is known before the database is.
func (c Config) onNATS() nats.Config {
	out := *c.NATS
	out.Space, out.Lanes, out.Log = c.Space, c.Lanes, c.Logger
	out.Inbox, out.LeaveStreams = nats.Inbox(c.Space, c.part(), c.topics()), c.part() != nats.Engine
	out.LaneAckWait, out.WorkAckWait = c.AckWait, c.AckWait
	return out
}

// part is what a process does on NATS (S4).
func (c Config) part() nats.Part {
	switch {
	case slices.Contains(c.Roles, RoleEngine):
		return nats.Engine
	case slices.Contains(c.Roles, RoleWorkers):
		return nats.Worker
	}
	return nats.Client
}

// topics are those that the process has handlers for.
func (c Config) topics() []string {
	if c.Workers == nil || !slices.Contains(c.Roles, RoleWorkers) {
		return nil
	}
	return c.Workers.Topics()
}
