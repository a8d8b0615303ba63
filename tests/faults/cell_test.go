package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

const (
	resend = world.Resend
	lease  = 2 * time.Second // and the ack wait

	// patience bounds every wait of a cell; a job that has not ended so long
	// after the fault is stranded (I11).
	patience = 2 * time.Minute
	// look is between two looks at what is waited for.
	look = 20 * time.Millisecond
	// jobs of a cell: enough that batches form, and few, for there are many cells.
	jobs = 4
)

// cell is a fault, done to a process that stands at a point.
type cell struct {
	point    fault.Point
	kind     *kind
	stepwise bool
	round    int // other choices in each

	t       *testing.T
	lane    *lane
	dsn     string
	space   string
	outside *world.Outside
	control *control
	pg, bus *cut.Proxy     // between the victim and its servers
	rt      *quipu.Runtime // the caller's: it starts, looks and signals, and runs nothing
	started map[string]quipu.Job
	victim  *world.Process
	others  []*world.Process
	storm   *world.Storm // has the processes of a round of chaos
	at      arrival
	kills   int
	unwatch func()        // ends the samples
	asked   int           // dead letters that were decided
	note    string        // what the fault came to
	ended   time.Duration // from the fault to the end of the last job
	left    string        // why it is not played
	done    bool          // it has passed
}

func (c *cell) String() string { return fmt.Sprintf("%s/%s/%s", c.point, c.kind.name, c.mode()) }

// mode is how the victim commits.
func (c *cell) mode() string {
	if c.stepwise {
		return "stepwise"
	}
	return "normal"
}

// choice is a number below n, of the cell's own.
func (c *cell) choice(of string, n int) int {
	h := fnv.New32a()
	fmt.Fprint(h, c, c.round, of)
	return int(h.Sum32() % uint32(n)) //nolint:gosec // a few
}

// run plays the cell: jobs, a process at its point, the fault, and the end of
// every job.
func (c *cell) run(t *testing.T, l *lane) {
	c.t, c.lane = t, l
	c.setUp()
	c.unwatch = c.watch()
	config := c.config()
	config.Postgres, config.NATS = through(t, c.dsn, c.pg), through(t, l.url, c.bus)
	config.Point, config.Nth, config.Control = c.point, 1+c.choice("nth", nths(c.point)), c.control.URL
	if c.kind.least {
		config.MaxBatch, config.Committers, config.Concurrency = 1, 1, 1
	}
	if c.point == fault.K0 {
		config.Start = c.ids()
	}
	c.victim = startProcess(t, os.Args[0], config)
	if c.point != fault.K0 {
		c.startJobs()
	}
	c.arrive()
	c.lose()
	c.kind.do(c)
	c.control.release()
	c.heal()
	if c.point == fault.K0 {
		c.startJobs() // what the victim does not get to
	}
	c.end()
	c.t.Logf("at %.60s, and %s from the fault's end to the end of every job; %d dead letters decided; %s", c.at.About, c.ended.Round(time.Millisecond), c.asked, c.note)
	c.drain()
	c.unwatch()
	c.check()
	if c.kind.loses {
		c.guardedOnce()
	}
	c.done = true
}

// setUp makes the cell's own world on the lane's servers.
func (c *cell) setUp() {
	t := c.t
	c.started = map[string]quipu.Job{}
	c.space = fmt.Sprintf("c%d", c.lane.cells)
	db := fmt.Sprintf("cell%d", c.lane.cells)
	c.lane.cells++
	c.dsn = devtest.Database(t, c.lane.pg, db)
	t.Cleanup(c.deleteStreams)
	c.outside, c.control = world.NewOutside(t), newControl(t)
	c.pg, c.bus = cut.New(t, hostOf(t, c.dsn)), cut.New(t, hostOf(t, c.lane.url))
	home := &world.World{T: t, Postgres: c.dsn, NATS: c.lane.nats, Space: c.space}
	cfg := home.Short()
	cfg.Lease, cfg.AckWait = lease, lease
	c.rt = home.Open(cfg)
	home.Deploy(c.rt, leafFlow)
	home.Deploy(c.rt, cellFlow)
	db1, err := pgx.Connect(t.Context(), c.dsn)
	require.NoError(t, err)
	defer db1.Close(context.Background())
	_, err = db1.Exec(t.Context(), makeBank)
	require.NoError(t, err)
}

// config is that of a process that stands nowhere.
func (c *cell) config() workerConfig {
	early := c.point == fault.K19
	return workerConfig{
		Postgres: c.dsn, NATS: c.lane.url, Space: c.space, Outside: c.outside.URL, Stepwise: c.stepwise,
		HotBytes: -c.choice("hot", 2), NoLocal: !early && c.choice("local", 2) == 0,
		NoFold:  leg1[c.point] || !early && c.choice("fold", 3) == 0,
		NoEarly: !early && c.choice("early", 3) == 0,
		Resend:  resend, Lease: lease, Build: "faults", Control: c.control.URL, Acks: true, Guarded: c.kind.loses,
	}
}

// another starts a process that takes over, or works beside the victim.
func (c *cell) another() {
	config := c.config()
	if c.choice("modes", 3) == 0 {
		config.Stepwise = !config.Stepwise // modes mix (C11)
	}
	if c.point == fault.K0 {
		config.Start = c.ids()
	}
	c.others = append(c.others, startProcess(c.t, os.Args[0], config))
}

// ids are the ids of the cell's jobs.
func (c *cell) ids() []string {
	ids := make([]string, jobs)
	for i := range ids {
		ids[i] = fmt.Sprintf("order-%d", i)
		if c.kind.small {
			ids[i] += big
		}
	}
	return ids
}

// startJobs starts the jobs, and gives each its signal.
func (c *cell) startJobs() {
	for _, id := range c.ids() {
		c.startJob(id)
	}
}

// startJob starts a job, and gives it its signal.
func (c *cell) startJob(id string) {
	c.eventually("the start of "+id, func() error {
		job, err := c.rt.Start(c.t.Context(), "cell", id, orderOf(id))
		c.started[id] = job
		return err
	})
	c.eventually("the signal to "+id, func() error {
		_, err := c.rt.Signal(c.t.Context(), "traveller", id, id, quipu.IdempotencyKey("s-"+id))
		return err
	})
}

// arrive waits until the victim stands at its point.
func (c *cell) arrive() {
	c.t.Helper()
	c.at = world.AwaitFrom(c.victim, "it came to its point", c.control.arrived)
}

// lose takes the reply to a COMMIT away, or an ack, where the point is that it is
// lost: the wire is cut, and the process goes on.
func (c *cell) lose() {
	switch c.point {
	case fault.K0:
		c.pg.DownAt(world.CommitStatement)
		c.control.release()
		again := time.Now().Add(away)
		c.eventually("the start is committed, and its reply lost", func() error {
			_, err := c.rt.Find(c.t.Context(), c.ids()[0])
			if err != nil && time.Now().After(again) { // it was another commit
				c.pg.Heal()
				c.pg.DownAt(world.CommitStatement)
				again = time.Now().Add(away)
			}
			return err
		})
	case fault.K16:
		c.bus.Up()
		c.control.release()
	}
}

// heal makes the victim's wires whole.
func (c *cell) heal() {
	c.pg.Heal()
	c.bus.Heal()
}

// end waits for the end of every job (I11).
func (c *cell) end() {
	began := time.Now()
	for id, job := range c.started {
		c.eventually("I11: the end of "+id, func() error {
			if c.kind.loses {
				c.answer()
			}
			v, err := below.Of(c.rt).Job(c.t.Context(), job.ID)
			if err == nil && !v.Ended {
				err = fmt.Errorf("it is %s: %+v", v.State, v)
			}
			return err
		})
	}
	c.ended = time.Since(began)
}

// drain ends every process that lives.
func (c *cell) drain() {
	for _, p := range c.processes() {
		require.NoError(c.t, p.Drain(patience), "T10: %s", p.Log)
	}
}

// eventually repeats what a fault may refuse, within patience.
func (c *cell) eventually(what string, do func() error) {
	c.t.Helper()
	end := time.Now().Add(patience)
	for {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Logf("the victim stood at %+v; open is:\n%s", c.at, c.open())
			for _, p := range c.processes() {
				c.t.Logf("a process said:\n%s", p.Log)
			}
			require.FailNow(c.t, what, "after %s: %v", patience, err)
		}
		time.Sleep(look)
	}
}

// open are the jobs that have not ended or still have rows, children too, as far as they can be read.
func (c *cell) open() string {
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	var text strings.Builder
	page, err := c.rt.Jobs(ctx, quipu.JobFilter{})
	for _, j := range page.Jobs {
		v, failed := below.Of(c.rt).Job(ctx, j.ID)
		if failed != nil || !v.Ended || len(v.Rows) > 0 {
			fmt.Fprintf(&text, "%s: %+v, %v\n", j.Key, v, failed)
		}
	}
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

// leg1 are the points of Leg1 messages, of which there are few where children's
// Leg1 is folded into their parent's Leg2 (C11).
var leg1 = map[fault.Point]bool{fault.K1: true, fault.K2: true, fault.K3: true, fault.K4: true, fault.K5: true}

// nths bounds for which passing of the point a process stands still.
func nths(p fault.Point) int {
	if p == fault.K0 {
		return 1 // it starts the first job
	}
	return jobs
}

// hostOf is the address in a URL.
func hostOf(t testing.TB, address string) string {
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// through leads a URL through the proxy.
func through(t testing.TB, address string, p *cut.Proxy) string {
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Host = p.Addr()
	return u.String()
}
