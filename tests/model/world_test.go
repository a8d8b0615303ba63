package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const space = "model"

// world is a plan in one bubble of time: engines and workers over memory.
type world struct {
	plan  *plan
	store *memstore.Store
	bus   *membus.Bus
	dice  *rand.Rand // of the outside
	roots []journal.JobID
	ran   *handled
	outside
	samples  map[sample]collation.ActivityLedger
	problems []string
	healed   atomic.Bool // the store has no more faults

	processes []*process
}

// process is an engine and its workers.
type process struct {
	stop  context.CancelFunc
	done  chan error // of each of the two
	leave context.CancelFunc
	left  chan error // of its session
}

// play runs the plan and returns what is wrong.
func play(t *testing.T, p *plan) (problems []string) {
	synctest.Test(t, func(*testing.T) {
		w := open(p)
		w.begin()
		if w.drive() && w.late() {
			w.judge()
		}
		w.close()
		problems = w.problems
	})
	return problems
}

func (w *world) wrong(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// must is for calls that cannot fail but by the faults of the world: it repeats
// them until they are through.
func must[T any](call func() (T, error)) T {
	for {
		v, err := call()
		switch {
		case err == nil:
			return v
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknown):
			time.Sleep(10 * time.Millisecond)
		default:
			panic(err)
		}
	}
}

func open(p *plan) *world {
	w := &world{
		plan: p, samples: map[sample]collation.ActivityLedger{},
		dice: rand.New(rand.NewPCG(p.world.Seed, 1)), //nolint:gosec // it must be repeatable
		ran:  &handled{asked: map[journal.JobID]map[string]request{}, turns: map[string][]string{}},
	}
	w.outside.init()
	f := &p.world
	w.store = memstore.New(memstore.Config{
		Space: space, Now: func() int64 { return time.Now().UnixMicro() }, Fault: f.fault(&w.healed),
	})
	w.bus = membus.New(membus.Config{
		Seed: f.Seed, Loss: f.Loss, Duplicate: f.Duplicate, Reorder: f.Reorder, AckWait: 2 * time.Second,
	})
	for i := range f.Engines {
		w.processes = append(w.processes, w.process(i))
	}
	return w
}

// process starts an engine and its workers.
func (w *world) process(i int) *process {
	ctx, cancel := context.WithCancel(context.Background())
	mode := w.plan.world.Engines[i]
	cfg := modes[mode]
	cfg.Store, cfg.Bus, cfg.Space, cfg.Writer = w.store, w.bus, space, fmt.Sprint("engine-", i)
	own := session.New(session.Config{Store: w.store, Process: store.Process{Name: cfg.Writer}})
	cfg.Session = own
	if mode == modeEarly {
		here := local.New(w.bus, cfg.Writer)
		cfg.Bus, cfg.Local, cfg.Early = here, here, early.NewTopics()
	}
	eng := must(func() (*engine.Engine, error) { return engine.New(ctx, cfg) })
	rt := must(func() (*work.Runtime, error) {
		return work.NewRuntime(work.Config{
			Registry: w.ran.registry(), Bus: cfg.Bus, Early: cfg.Early, Store: eng.Committer().Worker(), Space: space,
			Lanes:      eng.Config().Lanes,
			DeadLetter: eng.Committer().DeadLetter, Session: own, AckWait: 2 * time.Second,
			ResponseWait: time.Second, Holder: fmt.Sprint("worker-", i), Logger: slog.New(slog.DiscardHandler),
		})
	})
	keeping, leave := context.WithCancel(context.Background())
	p := &process{stop: cancel, done: make(chan error, 2), leave: leave, left: make(chan error, 1)}
	opened := make(chan struct{})
	go func() { p.left <- own.Run(keeping, opened) }()
	<-opened
	go func() { p.done <- eng.Run(ctx) }()
	go func() { p.done <- rt.Run(ctx) }()
	return p
}

func (w *world) end(p *process) {
	p.stop()
	errs := []error{<-p.done, <-p.done}
	p.leave()
	if err := errors.Join(append(errs, <-p.left)...); err != nil {
		w.wrong("a process ended with %v", err)
	}
}

func (w *world) close() {
	for _, p := range w.processes {
		w.end(p)
	}
	if err := w.bus.Close(); err != nil {
		w.wrong("the bus ended with %v", err)
	}
}

// begin deploys the flows and starts the jobs.
func (w *world) begin() {
	ctx := context.Background()
	var main journal.FlowRef
	for i, text := range w.plan.flows {
		f, err := flow.Parse("flow.yaml", []byte(text))
		if err != nil {
			panic(err) // the generator's own test says more
		}
		ref := collation.RefOf(f)
		must(func() (store.Deployed, error) {
			return w.store.Deploy(ctx, store.Deployment{Ref: ref, Canonical: f.Canonical()})
		})
		if i == 0 {
			main = ref
		}
	}
	if w.plan.world.Early {
		w.sendEarly()
	}
	for i, in := range w.plan.inputs {
		s := store.Start{Flow: main, Trigger: "start", Key: key(i), Input: []byte(spell(in))}
		w.roots = append(w.roots, w.start(&s, true).Job)
	}
}

// start starts a job, which may be there already: after a fault nobody knows.
func (w *world) start(s *store.Start, fresh bool) store.Started {
	started := must(func() ([]store.Started, error) {
		return journaltest.Driven{Store: w.store}.Start(context.Background(), []store.Start{*s}, collation.Mode{})
	})[0]
	var there *store.AlreadyStartedError
	switch {
	case started.Err == nil && fresh, fresh && w.plan.world.Store > 0:
	case !errors.As(started.Err, &there) || fresh || !there.SameFlow || !there.SameInput:
		w.wrong("start of %s: %v", s.Key, started.Err)
	}
	return started
}

// late does to the jobs that have ended what a late client may do: start them
// again, and interrupt them. Nothing may come of it.
func (w *world) late() bool {
	if w.dice.IntN(3) > 0 {
		return true
	}
	f := w.view(w.roots[0]).Flow
	s := store.Start{Flow: f, Trigger: "start", Key: key(0), Input: []byte(spell(w.plan.inputs[0]))}
	if again := w.start(&s, false); again.Job != w.roots[0] {
		w.wrong("%s is another job when it is started again", s.Key)
	}
	for _, id := range w.roots {
		w.interrupt(id)
	}
	return w.drive()
}

// patience is how long jobs may take on the clock of the bubble, faults
// included.
const patience = 12 * time.Minute

// calm is after how long the faults stop: then all must end (I11).
const calm = 2 * time.Minute

// drive goes on until all jobs have ended and nothing is left to do. It reports
// false where that does not come.
func (w *world) drive() bool {
	begun := time.Now()
	wiped, restarts := !w.plan.world.Wipe, w.plan.world.Restarts
	for quiet := 0; quiet < 3; {
		time.Sleep(time.Duration(50+w.dice.IntN(400)) * time.Millisecond)
		if !wiped && w.dice.IntN(5) == 0 {
			w.bus.Wipe()
			wiped = true
		}
		if restarts > 0 && w.dice.IntN(5) == 0 {
			restarts--
			i := w.dice.IntN(len(w.processes))
			w.end(w.processes[i])
			w.processes[i] = w.process(i)
		}
		if time.Since(begun) > calm {
			w.bus.Calm()
			w.healed.Store(true)
		}
		jobs := w.jobs()
		views := make([]*store.JobView, 0, len(jobs))
		for _, j := range jobs {
			views = append(views, must(func() (*store.JobView, error) {
				return w.store.Job(context.Background(), j.ID)
			}))
		}
		w.look(views)
		w.feed(views)
		w.wakeSleepers(views)
		if settled(views) && len(w.due()) == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if len(w.problems) > 0 {
			return false
		}
		if time.Since(begun) > patience {
			w.hang(views)
			return false
		}
	}
	return true
}

func (w *world) jobs() []store.JobSummary {
	return must(func() ([]store.JobSummary, error) {
		page, err := w.store.Jobs(context.Background(), store.JobFilter{Limit: store.MaxPage})
		return page.Jobs, err
	})
}

// settled says that all jobs have ended and no message is open.
func settled(views []*store.JobView) bool {
	return !slices.ContainsFunc(views, func(v *store.JobView) bool { return !v.Ended || len(v.Rows) > 0 })
}

// due are the rows that are still to be sent, of signals too.
func (w *world) due() []store.DueRow {
	return must(func() ([]store.DueRow, error) {
		rows, _, err := w.store.Due(context.Background(), store.MaxSweep)
		return rows, err
	})
}

// hang says what is left after too long a time.
func (w *world) hang(views []*store.JobView) {
	w.wrong("after %v: due are %+v", patience, w.due())
	for _, v := range views {
		if v.Ended && len(v.Rows) == 0 {
			continue
		}
		w.wrong("job %s of flow %s: %s, semaphore %d, not at its end", v.Key, v.Flow.Name, v.State, v.Semaphore)
		for _, r := range v.Rows {
			w.wrong("  row %s %s %s due %s held %q publication %d runs %d", r.Kind, r.Activity, r.DAD,
				time.UnixMicro(int64(r.NextAt)).UTC().Format(time.TimeOnly), r.Held, r.Publication, r.Runs)
		}
		for _, x := range v.Waits {
			w.wrong("  wait %s %s %s count %d", x.Activity, x.DAD, x.Key, x.Count)
		}
		for _, d := range v.Dead {
			w.wrong("  dead letter %s: %s", d.Letter.Reason, d.Letter.Message)
		}
		for _, i := range v.Instances {
			w.wrong("  %s %s %s", i.Key.Activity, i.Key.DAD, i.Ledger)
		}
	}
}

// handled is what the handlers saw.
type handled struct {
	mu    sync.Mutex
	asked map[journal.JobID]map[string]request // by the request's GUID
	turns map[string][]string                  // the jobs that asked in the name of an await, in their order
}

type request struct{ activity, input string }

func (h *handled) registry() *workers.Registry {
	reg := workers.New()
	workers.HandleRaw(reg, topicWork, h.handle, workers.Early())
	workers.HandleRaw(reg, topicEffect, h.handle, workers.Class(effects.Idempotent), workers.Early())
	return reg
}

// handle does what the input says.
func (h *handled) handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	call := workers.Info(ctx)
	in := unspell(raw)
	d := taskOf(in)
	turn := h.note(&call, spell(in), d.who)
	if call.Attempt <= d.fail {
		switch d.how {
		case howBusy:
			return nil, workers.RetryAfter(50*time.Millisecond, workers.Fail(failedCodes[howBusy], "busy"))
		case howPanic:
			panic("as told")
		case howHang:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errors.New("as told")
	}
	code, out := d.final(turn)
	if code != 200 {
		return nil, workers.Fatal(workers.Fail(code, "as told"))
	}
	return json.RawMessage(spell(out)), nil
}

// requests are those of a job that were heard of until now: a copy's handler may
// still run when the job has ended.
func (h *handled) requests(id journal.JobID) []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.asked[id]))
}

func (h *handled) note(call *workers.Call, input, who string) (turn int) {
	id, err := journal.ParseJobID(call.Job)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked[id] == nil {
		h.asked[id] = map[string]request{}
	}
	h.asked[id][call.Request] = request{call.Activity, input}
	if who == "" {
		return 0
	}
	if !slices.Contains(h.turns[who], call.Job) {
		h.turns[who] = append(h.turns[who], call.Job)
	}
	return slices.Index(h.turns[who], call.Job) + 1
}
