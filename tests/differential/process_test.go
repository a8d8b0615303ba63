package differential

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// What processes do beside the messages: sessions, leases, sweeps, bodies of Tx effects.

// process is a process that opens a session. The lease of each is another.
func process(n int) store.Process {
	return store.Process{
		Name: fmt.Sprint("p", n), Build: "b", Roles: []string{"engine", "worker"}, Topics: []string{"t.work", "t.fun"},
		Lanes: 4, Engine: n%2 == 0, Lease: time.Duration(n+1) * time.Minute,
	}
}

// live is one call about the sessions of processes.
func (w *twin) live() {
	o, ok := recent(w, "session", w.sessions)
	switch n := w.upTo("about a session", 9); {
	case !ok || n == 0 && len(w.sessions) < 4:
		w.mode.Session = w.openSession(process(w.upTo("process", 3))).pg.ID()
	case n == 1:
		require.NoError(w, o.end())
		w.sessions = slices.DeleteFunc(w.sessions, func(x *own) bool { return x == o })
		w.everything()
	case n < 4:
		o.lost(w.leases)
	case n < 5:
		w.leases = append(w.leases, o.held()...)
	default:
		_ = o.renew(store.Doing{
			Ran: []int64{1, 2}, Early: []store.EarlyRuns{{Kept: 2, Mean: 3}},
			Troubles: []store.Trouble{{Kind: "k", Text: "drawn"}},
		})
		w.mode.Session = o.pg.ID()
		w.everything()
	}
	for name, list := range map[string]func(s store.Store) ([]store.ProcessView, error){
		"processes": func(s store.Store) ([]store.ProcessView, error) { return s.Processes(w.ctx) },
		"silent":    func(s store.Store) ([]store.ProcessView, error) { return s.Silent(w.ctx) },
	} {
		_, _ = both(w, name, list)
	}
}

// everything has all jobs compared after the step.
func (w *twin) everything() {
	for id := range w.memory.AuditJobs(w.ctx, nil) {
		w.written[id] = true
	}
	maps.DeleteFunc(w.written, func(id journal.JobID, _ bool) bool { return id.IsZero() })
}

// lease is one call about the lease of a request; some are of no lawful worker.
func (w *twin) lease() {
	r, ok := w.request()
	if !ok {
		return
	}
	l, again := recent(w, "a lease", w.leases)
	if !again || w.chance("another lease", 50) {
		l = w.leaseOf(&r)
	}
	switch w.upTo("about a lease", 9) {
	case 0:
		l.Looks = w.chance("looks", 50)
		_ = w.HandBack(w.ctx, l)
	case 1:
		_, _ = both(w, "input", func(s store.Store) ([]byte, error) { return s.Input(w.ctx, l.Job, l.Request) })
	case 2, 3, 4:
		if kept, err := w.Keep(w.ctx, l); err == nil {
			w.leases = append(w.leases, kept)
		}
	default:
		turn, holder := r.Turn+w.upTo("off", 12)/12, pick(w, "holder", "ann", "bob")
		if taken, err := w.driven().Lease(w.ctx, r.Job, r.GUID, turn, holder, w.mode.Session); err == nil {
			w.leases = append(w.leases, taken)
		}
	}
}

// request is a request of any job.
func (w *twin) request() (collation.Row, bool) {
	return recent(w, "request", slices.DeleteFunc(w.rows(), func(r collation.Row) bool {
		return r.Kind != journal.MessageRequest
	}))
}

// leaseOf is the lease of a run of a request, or of none.
func (w *twin) leaseOf(r *collation.Row) store.Lease {
	v, err := w.memory.Job(w.ctx, r.Job)
	require.NoError(w, err)
	l := store.Lease{
		Job: r.Job, Request: r.GUID, Space: space, Generation: v.Generation, Turn: r.Turn + w.upTo("off", 12)/12,
		Fence: r.Fence, Session: w.mode.Session, Holder: cmp.Or(r.Holder, "ann"), Fresh: w.chance("fresh", 60),
		Timeout: pick[time.Duration](w, "timeout", 0, 10) * second, Resumes: v.From != nil,
	}
	if w.chance("another", 10) {
		l.Holder = "bob"
	}
	if e, ok := recent(w, "sent before", w.effects); ok && w.chance("after", 15) {
		l.After = e.Key
	}
	return l
}

// sweep claims what is due, as a sweeper does; some claims are of rows as they are not.
func (w *twin) sweep() {
	due, _, err := w.memory.Due(w.ctx, store.MaxSweep)
	require.NoError(w, err)
	var claims []store.Claim
	for _, d := range due {
		c := store.Claim{
			Row: d, Send: w.chance("send", 60), Refused: w.chance("refused", 15),
			Again: pick[time.Duration](w, "again", 1, 30, 90) * second, Session: w.mode.Session,
		}
		switch w.upTo("off", 20) {
		case 19:
			c.Row.Publication++
		case 20:
			c.Row.Turn++
		}
		claims = append(claims, c)
	}
	_, _ = w.Claim(w.ctx, claims)
	keys := []collation.RowKey{{Job: journal.JobID{1}, GUID: journal.GUID{1}}}
	for _, r := range w.rows() {
		keys = append(keys, collation.RowKey{Job: r.Job, GUID: r.GUID})
	}
	_, _ = both(w, "publications", func(s store.Store) ([]int, error) { return s.Publications(w.ctx, keys) })
}

// body is an effect of class tx, whose body writes, starts and signals.
func (w *twin) body() {
	r, ok := w.request()
	if !ok {
		return
	}
	l := w.leaseOf(&r)
	l.After = journal.Digest{} // a run waits for what it has sent before
	e := journal.Effect{Name: "move", N: w.upTo("n", 2), Turn: l.Turn, Fence: l.Fence, Class: store.ClassTx}
	e.Key = sha256.Sum256(fmt.Appendf(nil, "%s %s %d", l.Request, e.Name, e.N))
	value := fmt.Sprint(w.upTo("value", 9))
	_, _ = w.driven().TxEffect(w.ctx, l, e, func(ctx context.Context, tx any) (end store.TxEnd, err error) {
		require.NoError(w, tx.(*bodies).add(ctx, pick(w, "user's key", "a", "b"), value))
		if w.chance("start in it", 40) {
			w.startIn(ctx, tx)
		}
		if w.chance("signal in it", 40) {
			w.signalIn(ctx, tx)
		}
		switch w.upTo("its end", 9) {
		case 0:
			return end, errDrawn
		case 1:
			return store.TxEnd{Error: failed("declined").Error}, nil
		case 2:
			return store.TxEnd{Error: failed("not done").Error, NotDone: true}, nil
		}
		return store.TxEnd{Result: []byte(value)}, nil
	})
	w.everything()
	for _, key := range []string{"a", "b"} {
		var v string
		require.NoError(w, w.raw.QueryRow(w.ctx, "SELECT coalesce(max(v), '') FROM test.kept WHERE k = $1", key).Scan(&v))
		w.same("what bodies wrote", v, w.memory.Value(key))
	}
}

// joining decides on starts and signals in a caller's transaction.
func (w *twin) joining() *engine.Committer {
	c, err := engine.NewCommitter(w.ctx, engine.Config{Store: w, Space: space})
	require.NoError(w, err)
	return c
}

func (w *twin) startIn(ctx context.Context, tx any) {
	f := w.flows[pick(w, "flow", "work 1", "wait 1")]
	_, err := w.joining().StartTx(ctx, tx, request(f, pick(w, "key", "k0", "k5", "k6"), `{"n":0}`))
	w.Logf("start in it: %v", err)
}

func (w *twin) signalIn(ctx context.Context, tx any) {
	_, err := w.joining().SignalTx(ctx, tx, *w.drawSignal())
	w.Logf("signal in it: %v", err)
}

// drawSignal draws a signal from outside.
func (w *twin) drawSignal() *collation.Signal {
	x := &collation.Signal{
		Topic: "bell", Key: pick(w, "key", "a", "b"), Code: pick(w, "code", 200, 200, 202, 409), All: w.chance("all", 15),
		Payload: json.RawMessage(fmt.Sprint(w.upTo("payload", 3))), Keep: pick(w, "keep", collation.Micros(0), 60_000_000),
	}
	x.GUID = collation.SignalGUID(space, x.Topic, x.Key, fmt.Sprint(w.upTo("guid", 9)))
	return x
}
