package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/transport/nats"
)

func (e *env) child(r *receiver) childConfig {
	c := childConfig{
		Postgres: e.dsn, NATS: e.nats.URL(), Space: e.space, Receiver: r.URL, Stepwise: e.stepwise,
		Resend: quickResend, Lease: quickLease,
	}
	if e.logins != nil {
		c.Postgres, c.NATS = e.logins.engine, e.user(nats.Engine)
		c.Worker, c.WorkerNATS = e.worker(outside(r.URL).Topics())
	}
	return c
}

// outageScenario starts jobs, lets trouble happen until they have all ended,
// and checks that each key was applied once and the journal is whole.
func outageScenario(e *env, jobs int, trouble func(rt *quipu.Runtime, r *receiver)) {
	t := e.t
	r := newReceiver(t)
	rt := e.client()
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

// F1: jobs, 200 in a soak, while worker processes are killed at random.
func TestF1RandomKills(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		jobs, kills := soak.Times(20, 200), soak.Times(2, 6)
		outageScenario(e, jobs, func(rt *quipu.Runtime, r *receiver) {
			r.delay = 2 * time.Millisecond
			workers := []*child{startChild(t, e.child(r)), startChild(t, e.child(r))}
			for kill := range kills {
				e.progress(r, kill*3*jobs/(kills+1))
				victim := rand.N(len(workers))
				workers[victim].kill()
				workers[victim] = startChild(t, e.child(r))
			}
		})
	})
}

// P20, F10: the streams are deleted in mid-flow, with everything in them; the
// rows send again what is open (T1).
func TestP20StreamsDeleted(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		jobs, times := soak.Times(40, 100), 3
		outageScenario(e, jobs, func(rt *quipu.Runtime, r *receiver) {
			r.delay = 2 * time.Millisecond
			e.run(outside(r.URL))
			for deleted := range times {
				e.progress(r, deleted*3*jobs/(times+1))
				e.deleteStreams()
			}
		})
	})
}

// progress waits until more than so many calls were applied outside.
func (e *env) progress(r *receiver, applied int) {
	e.t.Helper()
	e.eventually("progress", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.applied) > applied
	})
}
