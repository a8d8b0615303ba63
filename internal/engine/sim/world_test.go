package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

const space = "sim"

// patience is how long the jobs may take to end after the faults are over, by the bubble's clock
// (I11).
const patience = 15 * time.Minute

// maxSteps bounds the calls of one run.
const maxSteps = 200_000

// world has everything that one seed decides.
type world struct {
	seed    uint64
	dice    *rand.Rand // of the simulator; the clients have their own
	weather weather
	lanes   int
	store   *memstore.Store
	bus     *membus.Bus
	gate    *gate
	post    post
	running sync.WaitGroup

	processes []*process // by slot; the first are the clients
	events    []event
	calm      bool // the faults are over
	begun     time.Time
	calmed    time.Time
	ended     time.Time
	steps     int
	timer     *time.Timer // of idle

	clients
	receiver
	guard
	acks
	bank
	keyLives
	features
	forks
	killer
	trace
}

// event is something that the simulator does at a given time.
type event struct {
	at time.Time
	do func()
}

// play runs one seed. It never returns early: faults are recorded in the world.
//
//go:noinline
func play(t *testing.T, seed uint64, log bool) (w *world) {
	w = &world{seed: seed}
	w.trace.keep = log
	synctest.Test(t, func(*testing.T) { w.run() })
	return w
}

func (w *world) run() {
	w.build()
	feeding, stop := context.WithCancel(context.Background())
	w.feed(feeding)
	w.clientsBegin()
	for slot := 1; slot < len(w.processes); slot++ {
		w.born(slot)
	}
	w.after(w.weather.calmAfter, w.calmDown)
	w.loop()
	w.ended = time.Now()
	close(w.gate.over)
	for _, p := range w.processes {
		p.stop()
	}
	stop()
	w.running.Wait()
	if err := w.bus.Close(); err != nil {
		w.wrong("the bus ended with %v", err)
	}
	// A handler whose run was given up tries to record what it did for a while longer than its
	// process waits.
	time.Sleep(lastInsistence)
}

// lastInsistence is longer than all attempts of the last write of an effect.
const lastInsistence = 5 * time.Minute

func (w *world) build() {
	w.dice = rand.New(rand.NewPCG(w.seed, 0)) //nolint:gosec // it must be repeatable
	w.begun = time.Now()
	w.gate = newGate()
	w.weather = w.drawWeather()
	w.drawFeatures()
	w.drawKiller()
	w.lanes = 1 + w.dice.IntN(2)
	f := &w.weather
	w.store = memstore.New(memstore.Config{
		Space: space, Now: func() int64 { return time.Now().Add(f.skew).UnixMicro() },
	})
	w.bus = membus.New(membus.Config{
		MaxPayload: w.maxPayload(),
		Seed:       w.seed, Loss: f.loss, Duplicate: f.duplicate, Reorder: f.reorder, MaxDelay: f.delay,
		AckWait: ackWait,
	})
	w.processes = make([]*process, 1, 4)
	w.processes[0] = &process{}
	for _, r := range w.drawRoles() {
		w.processes = append(w.processes, &process{role: r})
	}
	w.feature()
	w.receiver.init()
	w.guard.init()
	w.acks.init()
	w.bank.init()
	w.keyLives.init()
	w.born(0)
	for range f.wipes {
		w.after(w.between(100*time.Millisecond, 8*time.Second), func() {
			if !w.calm {
				w.note("wipe", "")
				w.bus.Wipe()
			}
		})
	}
}

func (w *world) destinations() []transport.Destination {
	out := []transport.Destination{transport.ToStart()}
	for n := range w.lanes {
		out = append(out, transport.ToLane(n))
	}
	for _, topic := range topics {
		out = append(out, transport.ToWork(topic))
	}
	return out
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.dice.Int64N(int64(most-least)))
}

func (w *world) after(d time.Duration, do func()) {
	w.events = append(w.events, event{time.Now().Add(d), do})
}

// choice is one possible next step: a call, or a message for a consumer.
type choice struct {
	call     *call
	feeder   *feeder
	consumer *consumer
}

// loop does one step after another until all is done.
func (w *world) loop() {
	var choices []choice
	for {
		synctest.Wait()
		w.look()
		if len(w.wrongs) > 0 {
			return
		}
		w.happen()
		choices = w.choices(choices[:0])
		if len(choices) == 0 {
			if w.hushed() && w.finished() && (w.judge() || len(w.wrongs) > 0) {
				return
			}
			if w.calm && time.Since(w.calmed) > patience || w.steps > maxSteps {
				w.hang()
				return
			}
			w.idle()
			continue
		}
		w.steps++
		c := choices[w.dice.IntN(len(choices))]
		if c.call != nil {
			w.release(c.call)
			continue
		}
		w.note("give", c.feeder.name, strconv.Itoa(c.feeder.count), c.consumer.p.name)
		w.hand(c.feeder, c.consumer)
	}
}

// choices returns them in an order that does not depend on goroutines.
func (w *world) choices(out []choice) []choice {
	w.gate.mu.Lock()
	for _, c := range w.gate.waiting {
		if !c.stalled && !c.p.paused.Load() {
			out = append(out, choice{call: c})
		}
	}
	w.gate.mu.Unlock()
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	for _, f := range w.post.feeders {
		if f.ready == nil {
			continue
		}
		for _, c := range w.post.consumers {
			if c.takes(f) {
				out = append(out, choice{feeder: f, consumer: c})
			}
		}
	}
	return out
}

// happen does the events whose time has come, in the order in which they were planned.
func (w *world) happen() {
	now := time.Now()
	for i := 0; i < len(w.events); i++ {
		if e := w.events[i]; !e.at.After(now) {
			w.events = append(w.events[:i], w.events[i+1:]...)
			e.do()
			synctest.Wait()
			i = -1
		}
	}
}

// idle lets time pass until something waits or the next event is due.
func (w *world) idle() {
	next := time.Now().Add(patience)
	for _, e := range w.events {
		if e.at.Before(next) {
			next = e.at
		}
	}
	if w.timer == nil {
		w.timer = time.NewTimer(time.Until(next))
	} else {
		w.timer.Reset(time.Until(next))
	}
	defer w.timer.Stop()
	select {
	case <-w.gate.kick:
	case <-w.timer.C:
	}
}

// release lets one call pass, with its fate.
func (w *world) release(c *call) {
	f := w.fate(c)
	w.note(f.word, c.p.name, c.id)
	switch {
	case f.stall > 0:
		c.stalled = true
		w.after(f.stall, func() { c.stalled = false })
		return
	case f.halt:
		w.halt(c.p)
		return
	case f.die && !f.do:
		w.die(c.p)
		return
	}
	w.gate.take(c)
	if f.die {
		c.p.dead.Store(true)
	}
	c.say <- f.verdict
	if f.die {
		synctest.Wait()
		w.die(c.p)
	}
}

// calmDown ends the faults: every process runs, and everything must end.
func (w *world) calmDown() {
	w.note("calm", "")
	w.calm, w.calmed = true, time.Now()
	w.bus.Calm()
	for _, p := range w.processes {
		p.paused.Store(false)
	}
	w.gate.mu.Lock()
	for _, c := range w.gate.waiting {
		c.stalled = false
	}
	w.gate.mu.Unlock()
}

// hushed says that no call is stalled or hangs with its process: it might hold a lock that the
// judge needs.
func (w *world) hushed() bool {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	return len(w.gate.waiting) == 0
}

// finished says that nothing is left to do.
func (w *world) finished() bool {
	if w.starting.Load() > 0 {
		return false
	}
	open, err := w.store.Jobs(context.Background(), store.JobFilter{States: []journal.JobState{journal.JobOpen}})
	if err != nil {
		panic(err)
	}
	if len(open.Jobs) > 0 {
		return false
	}
	for _, v := range w.views() {
		if v.State != journal.JobExpired && (!v.Ended || len(v.Rows) > 0) {
			return false
		}
	}
	return true
}

// views returns all jobs in one of the states, or in any, as they are now.
func (w *world) views(in ...journal.JobState) []*store.JobView {
	ctx := context.Background()
	got, err := w.store.Jobs(ctx, store.JobFilter{States: in, Limit: store.MaxPage})
	jobs := got.Jobs
	if err != nil {
		panic(err)
	}
	views := make([]*store.JobView, 0, len(jobs))
	for _, j := range jobs {
		v, err := w.store.Job(ctx, j.ID)
		if err != nil {
			panic(err)
		}
		views = append(views, v)
	}
	return views
}

// hang says what is left after too long a time (I11).
func (w *world) hang() {
	w.wrongs = append(w.wrongs, w.guard.open...)
	w.wrong("I11: %v after the faults, after %d calls, not all has ended", time.Since(w.calmed), w.steps)
	for _, v := range w.views() {
		if v.Ended && len(v.Rows) == 0 {
			continue
		}
		w.wrong("job %s of flow %s: %s, semaphore %d", v.Key, v.Flow.Name, v.State, v.Semaphore)
		for _, r := range v.Rows {
			w.wrong("  row %s %s %s %s due %s held %q publication %d runs %d", r.Kind, short(r.GUID), r.Activity, r.DAD,
				due(r.NextAt), r.Held, r.Publication, r.Runs)
		}
		for _, x := range v.Waits {
			w.wrong("  wait %s %s %s count %d", x.Activity, x.DAD, x.Key, x.Count)
		}
		for _, d := range v.Dead {
			w.wrong("  dead letter %s: %s", d.Letter.Reason, d.Letter.Message)
		}
	}
}

func due(at collation.Micros) string {
	if at == collation.Never {
		return "never"
	}
	return fmt.Sprint(time.UnixMicro(int64(at)).UTC().Format("15:04:05.000"))
}
