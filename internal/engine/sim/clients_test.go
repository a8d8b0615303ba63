package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// clients start the jobs, send the signals that they wait for, interrupt some, and decide on dead
// letters.
type clients struct {
	plan     *plan
	starting atomic.Int32 // clients that have no answer yet
	acked    map[string]journal.JobID
	tries    map[string]int // of signals, by wait
	shot     map[journal.JobID]bool
	operator *engine.Committer // nil until there is a decision to take
}

func (w *world) clientsBegin() {
	w.plan = drawPlan(w.seed)
	w.acked, w.tries, w.shot = map[string]journal.JobID{}, map[string]int{}, map[journal.JobID]bool{}
	deployed := []string{w.plan.kid, w.plan.main}
	if !w.weather.ownFlows {
		deployed = append(deployed, flow.UndoName) // otherwise the engine does it
	}
	for _, name := range deployed {
		ref := w.plan.refs[name]
		body, err := w.plan.source.Flow(context.Background(), name, ref.Version)
		if err == nil {
			_, err = w.store.Deploy(context.Background(), store.Deployment{Ref: ref, Canonical: body})
		}
		if err != nil {
			panic(err)
		}
	}
	jobs := 3
	if w.plan.content.small {
		jobs = 2
	}
	for i := range 1 + w.dice.IntN(jobs) {
		if w.plan.content.expire {
			w.begins(func() { w.restarter(fmt.Sprint("job-", i+1)) })
		}
		clients := 1 + w.dice.IntN(3)/2 // sometimes two start the same job
		for n := range clients {
			wait, publish := w.between(0, 3*time.Second), w.dice.IntN(3) > 0
			input := fmt.Sprintf(`{"list":[%s],"v":%d}`, strings.Join(strings.Split("12345"[:w.dice.IntN(5)], ""), ","), w.dice.IntN(6))
			w.begins(func() { w.starter(fmt.Sprint("job-", i+1), n, wait, publish, []byte(input)) })
		}
	}
	if most := w.features.forks; most > 0 {
		w.begins(func() { w.forker(most) })
	}
	if most := w.features.resumes; most > 0 {
		w.begins(func() { w.resumer(most) })
	}
	w.running.Go(w.outsider)
	if w.plan.content.expire {
		w.running.Go(w.retain)
	}
}

// begins runs a client that begins jobs; the run goes on until it has ended.
func (w *world) begins(client func()) {
	w.starting.Add(1)
	w.running.Go(func() {
		defer w.starting.Add(-1)
		client()
	})
}

// pause lets time pass. It returns false when the run is over.
func (w *world) pause(d time.Duration) bool {
	select {
	case <-w.gate.over:
		return false
	case <-time.After(d):
		return true
	}
}

// insist repeats a client's call while it fails as simulated. It returns errOver when the run is over.
func insist(call func() (journal.JobID, error)) (journal.JobID, error) {
	for {
		id, err := call()
		switch {
		case errors.Is(err, errOver):
			return id, errOver
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrRejected):
			time.Sleep(20 * time.Millisecond)
		default:
			return id, err
		}
	}
}

// starter starts one job, and repeats that until it knows that the job exists.
func (w *world) starter(key string, n int, wait time.Duration, publish bool, input []byte) {
	ctx := context.Background()
	time.Sleep(wait + time.Duration(n)*time.Microsecond)
	c := w.client(fmt.Sprint(key, "/", n, " "), publish)
	if c == nil {
		return
	}
	s := store.Start{Flow: w.plan.refs[w.plan.main], Trigger: "start", Key: key, Input: input, Tags: []string{"main"}}
	if key[len(key)-1]%4 == 3 {
		s.Delay = 30 * time.Millisecond
	}
	id, err := insist(func() (journal.JobID, error) {
		started := c.Start(ctx, []store.Start{s})[0]
		return started.Job, started.Err
	})
	switch _, there := errors.AsType[*store.AlreadyStartedError](err); {
	case err == nil, there:
		w.ack(key, id)
	case !errors.Is(err, errOver):
		w.wrong("I9: start of %s: %v", key, err)
	}
}

// ack records an acknowledged start (I9).
func (w *world) ack(key string, id journal.JobID) {
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	was, noted := w.acked[key]
	if noted && w.resumed(id) {
		return // too late: the job has been resumed
	}
	if wrong := w.reborn(key, id); wrong != "" {
		w.wrongs = append(w.wrongs, wrong)
	}
	if noted && w.stored(was) && !w.stored(id) {
		return // too late: the job has ended and was removed, and its key has begun again
	}
	w.acked[key] = id
}

func (w *world) resumed(id journal.JobID) bool {
	v, err := w.store.Job(context.Background(), id)
	return err == nil && !v.Next.IsZero()
}

func (w *world) stored(id journal.JobID) bool {
	_, err := w.store.Job(context.Background(), id)
	return err == nil
}

// outsider looks at the jobs from time to time.
func (w *world) outsider() {
	dice := rand.New(rand.NewPCG(w.seed, 2)) //nolint:gosec // it must be repeatable
	for w.pause(time.Duration(300+dice.IntN(900)) * time.Millisecond) {
		for _, v := range w.views(journal.JobOpen) {
			for i := range v.Waits {
				if dice.IntN(2) == 0 {
					w.tells(&v.Waits[i], dice)
				}
			}
			if w.plan.interrupts && !w.shot[v.ID] && dice.IntN(12) == 0 {
				w.shot[v.ID] = true
				w.interrupt(v.ID)
			}
		}
		w.operate(dice)
	}
}

// tells sends what a job waits for: one signal, or in some worlds several at once to a repeating
// hook, the last of which may end it.
func (w *world) tells(x *collation.Wait, dice *rand.Rand) {
	if w.plan.content.flurry && x.Repeat && x.Count < 2 {
		for range 1 + dice.IntN(3) {
			w.tell(x, dice)
		}
		x.Count += dice.IntN(3)
	}
	w.tell(x, dice)
}

// tell sends the signal that a job waits for. It repeats the same signal until it is
// acknowledged.
func (w *world) tell(x *collation.Wait, dice *rand.Rand) {
	code := collation.CodeOK
	if x.Repeat && x.Count < 2 {
		code = collation.CodePass
	}
	if dice.IntN(8) == 0 && !x.Repeat {
		code = 409
	}
	name := fmt.Sprint(short(x.GUID), w.tries[short(x.GUID)])
	s := &collation.Signal{
		GUID: collation.SignalGUID(space, x.Topic, x.Key, name), Topic: x.Topic, Key: x.Key, Code: code,
		Payload: json.RawMessage(`{"ok":true}`), All: dice.IntN(4) == 0,
	}
	st := journaltest.Driven{Store: &port{Store: w.store, p: w.processes[0], label: "signal "}}
	if _, err := st.Signal(context.Background(), s, collation.Mode{}); err == nil {
		w.tries[short(x.GUID)]++
	}
}

func (w *world) interrupt(id journal.JobID) {
	order := collation.InterruptOrder{Code: 555, Reason: "enough", Throw: true, From: "outside"}
	row, err := order.Row(collation.AskedInterruptGUID("enough", id), id, collation.Micros(time.Now().UnixMicro()))
	if err != nil {
		panic(err)
	}
	st := journaltest.Driven{Store: &port{Store: w.store, p: w.processes[0], label: "interrupt "}}
	_, _ = st.Interrupt(context.Background(), row, collation.Mode{}) // it may get lost
}

// operate decides on dead letters: it answers what was applied outside, and retries anything
// else.
func (w *world) operate(dice *rand.Rand) {
	letters, err := w.store.DeadLetters(context.Background(), store.DeadFilter{Limit: store.MaxPage})
	if err != nil {
		panic(err)
	}
	if len(letters) > 0 && w.operator == nil {
		w.operator = w.client("operator ", false)
	}
	if w.operator == nil {
		return
	}
	for _, d := range letters {
		if dice.IntN(2) == 0 {
			continue
		}
		a := store.Action{ID: d.ID, Retry: true, Who: "operator", Reason: "looked outside"}
		if !w.looked(&d, &a, dice) {
			continue
		}
		w.frees(d.Letter.Row)
		if err := w.operator.Act(context.Background(), a); errors.Is(err, store.ErrStale) &&
			a.Effect != (journal.Digest{}) {
			// Once the request is answered, nothing can be said of its effects. The message that
			// carries its answer is retried.
			_ = w.operator.Act(context.Background(), store.Action{ID: d.ID, Retry: true, Who: a.Who, Reason: a.Reason})
		} // otherwise it is looked at again
	}
}

// looked decides by what the outside knows of an unfinished Guarded effect: done, with its
// result, or not done; or it ends the request without either. It returns false if the outside may
// still change its mind.
func (w *world) looked(d *store.DeadView, a *store.Action, dice *rand.Rand) bool {
	if w.receiver.awaits(d.Letter.Row) {
		return false
	}
	if dice.IntN(4) == 0 {
		a.Retry, a.Response = false, answer // for a message that cannot be answered it is refused
		return true
	}
	rows, err := w.store.Effects(context.Background(), d.Letter.Job, d.Letter.Row)
	if err != nil {
		panic(err)
	}
	for i := range rows {
		if f := &rows[i]; f.Class == store.ClassGuarded && f.State == store.EffectStarted {
			if w.receiver.away(f.Key.String()) { // for a job that this one resumes
				return false
			}
			if a.Effect = f.Key; w.receiver.applied(f.Key.String()) {
				a.Retry, a.Done = false, resultOf(f.Key.String())
			}
			break
		}
	}
	return true
}

var answer = &journal.Response{
	Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: wire.Encode(map[string]int{"n": 7}),
}
