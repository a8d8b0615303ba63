package quipu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
)

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
			Name: v.Name, Build: v.Build, Roles: roles, Topics: slices.DeleteFunc(v.Topics, func(topic string) bool { return topic == "" }),
			Since: time.UnixMicro(int64(v.Since)), Seen: time.UnixMicro(int64(v.Renewed)),
		}
	}
	return all, nil
}

// process is what this process tells the others about itself.
func (rt *Runtime) process() store.Process {
	c := rt.cfg
	roles := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		roles[i] = string(r)
	}
	return store.Process{
		Name: c.Name, Build: c.Build, Roles: roles, Topics: rt.topics(), Lanes: c.Lanes, Engine: slices.Contains(c.Roles, RoleEngine), Lease: c.Lease,
	}
}

// lanesLook bounds the time for reading the lanes of other processes.
const lanesLook = 5 * time.Second

// sameLanes refuses a number of lanes that differs from that of the live engines (T9). A session of
// another process says nothing about an engine: a worker's login may write one with any number (S8).
func (rt *Runtime) sameLanes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lanesLook)
	defer cancel()
	living, err := rt.store.Processes(ctx)
	if err != nil {
		return nil // opening the session will fail too, and waits for the database
	}
	for _, p := range living {
		if p.Engine && p.Lanes != rt.cfg.Lanes {
			return fmt.Errorf("%w: Lanes is %d here and %d in process %s: all processes of a space have the same number; "+
				"to change it stop them all first", ErrConfig, rt.cfg.Lanes, p.Lanes, p.Name)
		}
	}
	return nil
}
