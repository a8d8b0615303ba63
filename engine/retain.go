package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/journal/store"
)

// retainLimit bounds the jobs that become tombstones at once: with the pause between two
// parts it leaves the database to those whose jobs run, and is still some thousands a
// second.
const retainLimit = choreLimit / 2

// retireEvery is how often it is looked for partitions of which all jobs have expired.
const retireEvery = expireEvery

// Retain makes tombstones of closed jobs whose time has passed (J7), ends old ones, and
// drops partitions of which nothing else is left, once archive, where there is one, has
// kept them (W11): a bounded part at a time, until ctx ends. It needs the rights of
// retention (4.5), and for partitions those of the tables' owner; without them it says
// so once and tries again from time to time. Any number of processes may do it (T8).
func Retain(ctx context.Context, st store.Expirer, archive store.Archive, log *slog.Logger) error {
	chores := []*chore{{
		name: "the removal of expired jobs", every: expireEvery, log: log, jitter: rand.N[time.Duration],
		once: func(ctx context.Context) (bool, error) {
			more, err := st.Expire(ctx, retainLimit)
			if err != nil {
				err = fmt.Errorf("%w (if rights are missing: it needs those of retention, or the process not to have this role)", err)
			}
			return more, err
		},
	}}
	if parts, ok := st.(store.Retirer); ok {
		chores = append(chores, &chore{
			name: "dropping the partitions of expired jobs", every: retireEvery, log: log, jitter: rand.N[time.Duration],
			once: func(ctx context.Context) (bool, error) {
				more, err := parts.Retire(ctx, archive)
				if errors.Is(err, store.ErrOwner) {
					err = fmt.Errorf("%w, or have a process with it do this", err)
				}
				return more, err
			},
		})
	}
	var g errgroup.Group
	for _, c := range chores {
		g.Go(func() error { return c.run(ctx) })
	}
	return g.Wait()
}
