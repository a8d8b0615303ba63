package quipu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/journal/store"
)

// Process is a process of the space that lives: it was heard of within its lease.
type Process struct {
	Name   string
	Build  string
	Roles  []Role
	Topics []string // that it has handlers for
	Since  time.Time
	Seen   time.Time // when it was heard of last, by the database's clock
}

// Processes lists the processes that live and take part in the work of the space by
// NATS, the longest living first, at most 1 000. Clients, processes with the roles
// schedule and retention alone, and workers in other languages are not known.
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
			Name: v.Name, Build: v.Build, Roles: roles, Topics: v.Topics,
			Since: time.UnixMicro(int64(v.Since)), Seen: time.UnixMicro(int64(v.Renewed)),
		}
	}
	return all, nil
}

// process is what the others of the space know of this one.
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

// lanesLook bounds the look at the lanes of others.
const lanesLook = 5 * time.Second

// sameLanes refuses a number of lanes that is not that of the processes that live (T9).
func (rt *Runtime) sameLanes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lanesLook)
	defer cancel()
	living, err := rt.store.Processes(ctx)
	if err != nil {
		return nil // the session cannot be opened either, and waits for the database
	}
	for _, p := range living {
		if p.Lanes != rt.cfg.Lanes {
			return fmt.Errorf("%w: Lanes is %d here and %d in process %s: all processes of a space have the same number; "+
				"to change it stop them all first", ErrConfig, rt.cfg.Lanes, p.Lanes, p.Name)
		}
	}
	return nil
}
