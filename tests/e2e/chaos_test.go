//go:build chaos

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

// A round is load under faults, then quiet until every job has ended.
const (
	chaosSpan  = 2 * time.Minute        // of all rounds, where QUIPU_CHAOS says nothing
	chaosLoad  = 22 * time.Second       // of one round
	chaosBatch = 9                      // jobs started at once
	chaosDelay = 40 * time.Millisecond  // of an answer from outside, on average
	chaosLook  = 150 * time.Millisecond // between two looks at what is open
)

// chaos is one round.
type chaos struct {
	e     *env
	pg    *dev.Postgres
	r     *receiver
	url   string         // of NATS, which keeps it over a restart
	rt    *quipu.Runtime // the caller: it starts, looks and resolves, and runs nothing
	seed  uint64
	round int
	lease time.Duration
	mode  string // of all its processes, or mixed

	mu     sync.Mutex
	kids   []*kid         // by slot; nil before its first
	counts map[string]int // what happened, for the report
	odd    []string       // what is allowed to happen and worth knowing
	sum    *total
	dumped sync.Once
}

// TestChaos runs all fault kinds that one machine has at the same time, over and
// over, and holds each round to the invariants (6.1). What single faults do is
// in the fault cells, and every kind of activity under faults is in the simulator
// and the model; this one is for what only the coincidence of faults finds on real
// servers.
//
// QUIPU_CHAOS is how long it begins new rounds. QUIPU_CHAOS_SEED repeats the
// choices of a run: faults, pauses, limits and load; which of them meet is up to
// the machine.
func TestChaos(t *testing.T) {
	span, seed := chaosSpan, rand.Uint64()
	var err error
	if s := os.Getenv("QUIPU_CHAOS"); s != "" {
		span, err = time.ParseDuration(s)
		require.NoError(t, err, "QUIPU_CHAOS is a duration such as 10m")
	}
	if s := os.Getenv("QUIPU_CHAOS_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "QUIPU_CHAOS_SEED is a number that an earlier run printed")
	}
	t.Logf("QUIPU_CHAOS_SEED=%d", seed)
	pg, err := dev.StartPostgres(t.Context(), postgresDir(t), dev.PostgresOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop(dev.StopImmediate)) })
	end := time.Now().Add(span)
	sum := &total{begun: time.Now(), events: map[string]int{}}
	defer sum.report(t)
	for round := 0; time.Now().Before(end) && !t.Failed(); round++ {
		ok := t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			dsn := devtest.Database(t, pg, fmt.Sprintf("quipu%d", round))
			e := &env{t: t, dsn: dsn, nats: devtest.NATS(t), space: "shop", log: &devtest.Log{Keep: keepLog}}
			c := &chaos{e: e, pg: pg, r: newReceiver(t), url: e.nats.URL(), seed: seed, round: round, counts: map[string]int{}, sum: sum}
			c.run()
		})
		sum.add(ok)
	}
}

// dice are the choices of one goroutine, so that the seed repeats them however
// the goroutines meet.
func (c *chaos) dice(owner string) *rand.Rand {
	var seed [32]byte
	copy(seed[:], fmt.Sprintf("%016x %x %s", c.seed, c.round, owner))
	return rand.New(rand.NewChaCha8(seed)) //nolint:gosec // choices, no secret
}

// run is the round.
func (c *chaos) run() {
	t, dice := c.e.t, c.dice("round")
	c.lease = pick(dice, 700*time.Millisecond, time.Second, quickLease)
	c.mode = pick(dice, mixed, mixed, "stepwise", "nofold", "fold")
	c.r.mood = c.mood(c.dice("mood"))
	c.rt = c.e.open(c.e.config(nil))
	for _, f := range append(slices.Clone(chaosFlows), orderFlow("order"), bankFlow) {
		c.e.deploy(c.rt, f)
	}
	c.e.openBank()
	c.kids = make([]*kid, 2+dice.IntN(2))
	stopKids := c.background(func(ctx context.Context, wg *sync.WaitGroup) {
		for slot := range c.kids {
			dice := c.dice(fmt.Sprintf("slot %d", slot))
			wg.Go(func() { c.keep(ctx, slot, dice) })
		}
	})
	faults := c.chosen(dice)
	stopFaults := c.background(func(ctx context.Context, wg *sync.WaitGroup) {
		for _, f := range append(slices.Clone(faults), fault{"a person", 200 * time.Millisecond, 600 * time.Millisecond, c.person},
			fault{"chores", 50 * time.Millisecond, 300 * time.Millisecond, c.chores}) {
			dice := c.dice(f.name)
			wg.Go(func() { often(ctx, dice, f) })
		}
	})
	want := c.load(c.dice("load"))
	stopFaults()
	stopChores := c.background(func(ctx context.Context, wg *sync.WaitGroup) {
		dice := c.dice("chores after the faults")
		wg.Go(func() { often(ctx, dice, fault{"chores", chaosLook, 2 * chaosLook, c.chores}) })
	})
	quiet := time.Now()
	open := c.settle(want)
	took := time.Since(quiet)
	c.stranded(open)
	c.alone()
	stopChores()
	stopKids()
	c.report(faults, len(want.jobs), took)
	require.Empty(t, open, "I11: jobs have not ended %s after the faults", patience)
	c.check(want)
	c.e.checkBank(want.moves)
	c.e.clean(c.rt)
}

// background starts goroutines that end with the returned stop, or the test: no
// process and no stopped server outlives a round that fails.
func (c *chaos) background(start func(context.Context, *sync.WaitGroup)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	start(ctx, &wg)
	stop = func() { cancel(); wg.Wait() }
	c.e.t.Cleanup(stop)
	return stop
}

// wanted is what was started, and what must come of it outside.
type wanted struct {
	jobs         map[string]quipu.Job // by key
	once, atMost []string
	trips        map[string]bool // by key: whether it is paid for
	moves        int             // of money
}

// load starts batches of jobs until the round's time is over.
func (c *chaos) load(dice *rand.Rand) wanted {
	w := wanted{jobs: map[string]quipu.Job{}, trips: map[string]bool{}}
	until := time.Now().Add(chaosLoad)
	for batch := 0; time.Now().Before(until); batch++ {
		reqs := make([]quipu.StartRequest, chaosBatch)
		for i := range reqs {
			flow := pick(dice, "order", "order", "order", "mix", "wires", "wires", "bank", "one")
			key := fmt.Sprintf("%s-%d-%d", flow, batch, i)
			reqs[i] = c.request(flow, key)
			switch flow {
			case "bank":
				reqs[i].Input = map[string]any{"moves": moves(dice, key)}
				w.moves += movesEach
			case "one":
				w.trips[key] = dice.IntN(2) == 0
			}
			once, atMost := applied(flow, key, w.trips[key])
			w.once, w.atMost = append(w.once, once...), append(w.atMost, atMost...)
		}
		c.e.eventually("the batch is started", func() bool { return c.start(reqs, w.jobs) })
		c.e.eventually("the trips of the batch are paid for, or not", func() bool { return c.pay(reqs, w.trips) })
		pause(c.e.t.Context(), between(dice, 0, 900*time.Millisecond))
	}
	return w
}

// start is a caller that asks again until it hears that each job is there: an
// error leaves open whether it was started (I9).
func (c *chaos) start(reqs []quipu.StartRequest, jobs map[string]quipu.Job) (all bool) {
	res, err := c.rt.StartMany(c.e.t.Context(), reqs)
	if err != nil {
		return false
	}
	all = true
	for i, r := range res {
		if r.Err != nil {
			all = false
			continue
		}
		jobs[reqs[i].Key] = r.Job
	}
	return all
}

// pay tells each trip of a batch, once, whether it is paid for.
func (c *chaos) pay(reqs []quipu.StartRequest, trips map[string]bool) (all bool) {
	all = true
	for _, r := range reqs {
		if paid, trip := trips[r.Key]; trip {
			_, err := c.rt.Signal(c.e.t.Context(), "paid", r.Key, paid, quipu.IdempotencyKey("pay"))
			all = all && err == nil
		}
	}
	return all
}

// person resolves the parked Guarded effects, as somebody who asked outside
// would. Any other dead letter is a fault of the product.
func (c *chaos) person(ctx context.Context, _ *rand.Rand) {
	letters, err := c.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{Limit: 100})
	if err != nil {
		return // Postgres is away
	}
	for _, l := range letters {
		if !parks(l.Activity) {
			c.e.t.Errorf("dead letter of %s, %s, %s: %s", l.Job.Key, l.Activity, l.Reason, l.Message)
			_ = c.rt.Operator().Decide(ctx, quipu.Decision{DeadLetter: l.ID, Verdict: quipu.Retry, Who: "chaos", Reason: "to see how the rest ends"})
			continue
		}
		if c.rt.Operator().Decide(ctx, quipu.Decision{
			DeadLetter: l.ID, Verdict: quipu.Resolve, Result: map[string]any{"receipt": "by hand"}, Who: "ann", Reason: "found it in their books",
		}) == nil {
			c.count("resolve")
		}
	}
}

// chores remove what has expired, as the role does in its own time.
func (c *chaos) chores(ctx context.Context, dice *rand.Rand) {
	_, _ = below.Of(c.rt).Expire(ctx, 1+dice.IntN(20)) // Postgres may be away
}

// settle waits until every job has completed (I11) and returns those that have
// not within patience.
func (c *chaos) settle(w wanted) (open map[string]quipu.Job) {
	ctx, cancel := context.WithTimeout(c.e.t.Context(), patience)
	defer cancel()
	open = maps.Clone(w.jobs)
	for len(open) > 0 {
		c.person(ctx, nil)
		for key, job := range open {
			v, err := below.Of(c.rt).Job(ctx, job.ID)
			if err != nil || !v.State.Closed() {
				continue
			}
			delete(open, key)
			paid, trip := w.trips[key]
			if refused := trip && !paid && v.State == journal.JobFailed && v.Code == 402; v.State != journal.JobCompleted && !refused {
				c.e.t.Errorf("job %s ended %s: %+v", key, v.State, v)
			}
		}
		if !pause(ctx, chaosLook) {
			return open
		}
	}
	return open
}

// count counts what happened.
func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// note keeps what is allowed to happen and worth knowing.
func (c *chaos) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.odd = append(c.odd, fmt.Sprintf(format, args...))
}

// report says what the round was.
func (c *chaos) report(faults []fault, jobs int, quiet time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	c.e.t.Logf("%s; %s, lease %s, %d workers, %d jobs; %v; all ended %s after the faults",
		strings.Join(names, ", "), c.mode, c.lease, len(c.kids), jobs, c.counts, quiet.Round(10*time.Millisecond))
	for _, o := range c.odd {
		c.e.t.Logf("  %.500s", o)
	}
	c.sum.round(c, jobs, quiet)
}
