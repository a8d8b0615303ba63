package quipu

import (
	"context"
	"slices"
	"time"
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
