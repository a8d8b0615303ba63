package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev"
)

func (e *env) child(r *receiver) childConfig {
	return childConfig{
		Postgres: e.dsn, NATS: e.nats.URL(), Space: e.space, Receiver: r.URL, Stepwise: e.stepwise,
		Resend: quickResend, Lease: quickLease,
	}
}

// outageScenario starts jobs, lets trouble happen until they have all ended,
// and checks that each key was applied once and the journal is whole.
func outageScenario(e *env, jobs int, trouble func(rt *quipu.Runtime, r *receiver)) {
	t := e.t
	r := newReceiver(t)
	rt := e.open(e.config(nil))
	e.deploy(rt, orderFlow("order"))
	started, want := e.startMany(rt, "order", jobs, "charge", "reserve", "ship")
	trouble(rt, r)
	for _, job := range started {
		_, err := e.wait(rt, job)
		require.NoError(t, err, "job %s", job.Key)
	}
	asked := r.appliedOnce(t, want)
	t.Logf("%d calls outside for %d applied", asked, len(want))
	e.clean(rt)
}

// F1: 200 jobs while worker processes are killed at random.
func TestF1RandomKills(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		outageScenario(e, 200, func(rt *quipu.Runtime, r *receiver) {
			r.delay = 2 * time.Millisecond
			workers := []*child{startChild(t, e.child(r)), startChild(t, e.child(r))}
			for kill := range 6 {
				applied := kill * 80
				e.eventually("progress before the next kill", func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return len(r.applied) > applied
				})
				victim := rand.N(len(workers))
				workers[victim].kill()
				workers[victim] = startChild(t, e.child(r))
			}
		})
	})
}

// F4: Postgres is stopped at once and started again under load.
func TestF4PostgresRestarted(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		pg, err := dev.StartPostgres(t.Context(), postgresDir(t), dev.PostgresOptions{Databases: []string{"quipu"}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, pg.Stop(dev.StopImmediate)) })
		e.dsn = pg.DSN("quipu")
		outageScenario(e, 100, func(rt *quipu.Runtime, r *receiver) {
			e.work(e.open(e.config(outside(r.URL))))
			for _, mode := range []dev.StopMode{dev.StopImmediate, dev.StopFast} {
				e.progress(r, 20)
				require.NoError(t, pg.Restart(t.Context(), mode))
			}
		})
	})
}

// F9: NATS is stopped and started again under load.
func TestF9NATSRestarted(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		outageScenario(e, 100, func(rt *quipu.Runtime, r *receiver) {
			e.work(e.open(e.config(outside(r.URL))))
			for range 2 {
				e.progress(r, 20)
				require.NoError(t, e.nats.Restart(t.Context()))
			}
		})
	})
}

// P20, F10: the streams are deleted in mid-flow, with everything in them; the
// rows send again what is open (T1).
func TestP20StreamsDeleted(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		outageScenario(e, 100, func(rt *quipu.Runtime, r *receiver) {
			e.work(e.open(e.config(outside(r.URL))))
			for range 3 {
				e.progress(r, 20)
				e.deleteStreams()
			}
		})
	})
}

// progress waits until n more calls were applied outside.
func (e *env) progress(r *receiver, n int) {
	e.t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.applied)
	}
	from := count()
	e.eventually("progress", func() bool { return count() >= from+n })
}
