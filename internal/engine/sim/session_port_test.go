package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
)

// own is the session of a process, through the gate.
type own struct {
	store.Session
	p *process
}

// OpenSession implements store.Sessions.
func (s *port) OpenSession(ctx context.Context, p store.Process) (store.Session, error) {
	return through(ctx, s.p, kindWrite, "open session", func() (store.Session, error) {
		o, err := s.Store.OpenSession(ctx, p)
		if err != nil {
			return nil, err
		}
		return &own{o, s.p}, nil
	})
}

// Renew implements store.Session.
func (o *own) Renew(ctx context.Context, d store.Doing) ([]string, error) {
	return through(ctx, o.p, kindWrite, "renew", func() ([]string, error) { return o.Session.Renew(ctx, d) })
}

// Lost implements store.Session.
func (o *own) Lost(ctx context.Context, leases []store.Lease) ([]store.LostLease, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	of := make([]string, len(leases))
	for i := range leases {
		of[i] = leased("", &leases[i])
	}
	slices.Sort(of) // the order of its runs is random
	return through(ctx, o.p, kindRead, "lost"+strings.Join(of, ""), func() ([]store.LostLease, error) {
		return o.Session.Lost(ctx, leases)
	})
}

// Held implements store.Session.
func (o *own) Held(ctx context.Context) ([]store.Lease, error) {
	return through(ctx, o.p, kindRead, "held", func() ([]store.Lease, error) {
		held, err := o.Session.Held(ctx)
		slices.SortFunc(held, func(a, b store.Lease) int { return strings.Compare(leased("", &a), leased("", &b)) })
		return held, err
	})
}

// End implements store.Session.
func (o *own) End(ctx context.Context) error {
	if ctx.Err() != nil { // it only closes its connection
		return ctx.Err()
	}
	return action(ctx, o.p, kindWrite, "end session", func() error { return o.Session.End(ctx) })
}
