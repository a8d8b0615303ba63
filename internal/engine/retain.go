package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/store"
)

// retainLimit bounds the jobs that become tombstones at once. With the pause between two parts,
// running jobs keep enough of the database, and it is still some thousands a second.
const retainLimit = choreLimit / 2

// Retain makes tombstones of closed jobs whose time has passed (J7), and ends old tombstones. Once
// only their history is left it drops that, after archive, if not nil, has kept it (W11). It also
// makes room for new jobs, as engines do whose login may (W10). It does a bounded part at a time,
// until ctx ends. It needs the rights of retention (4.5), and the tables' owner's to drop and to
// make room. Without them it logs that once and tries again from time to time. Any number of
// processes may do it (T8).
func Retain(ctx context.Context, st store.Retention, archive store.Archive, log *slog.Logger) error {
	var g errgroup.Group
	for name, once := range map[string]func(context.Context) (bool, error){
		"the removal of expired jobs": func(ctx context.Context) (bool, error) {
			more, err := st.Expire(ctx, retainLimit)
			if err != nil {
				err = fmt.Errorf("%w (if rights are missing: it needs those of retention, or the process not to have this role)", err)
			}
			return more, err
		},
		"dropping the history of expired jobs": func(ctx context.Context) (bool, error) {
			more, err := st.Retire(ctx, archive)
			if errors.Is(err, store.ErrOwner) {
				err = fmt.Errorf("%w, or have a process with it do this", err)
			}
			return more, err
		},
		roomName: func(ctx context.Context) (bool, error) { return false, st.Extend(ctx) },
	} {
		c := chore{name: name, every: expireEvery, once: once, log: log, jitter: rand.N[time.Duration]}
		g.Go(func() error { return c.run(ctx) })
	}
	return g.Wait()
}
