package differential

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

const second = time.Second

// most is how many sessions have a connection at a time.
const most = 4

// driven drives both.
func (w *twin) driven() journaltest.Driven { return journaltest.Driven{Store: w} }

// rows are the rows of all jobs, in a fixed order.
func (w *twin) rows() (out []collation.Row) {
	got, err := w.memory.Jobs(w.ctx, store.JobFilter{Limit: store.MaxPage})
	list := got.Jobs
	require.NoError(w, err)
	for i := range list {
		v, err := w.memory.Job(w.ctx, list[i].ID)
		require.NoError(w, err)
		out = append(out, v.Rows...)
	}
	slices.SortFunc(out, func(a, b collation.Row) int { return compare(&a, &b) })
	return slices.CompactFunc(out, func(a, b collation.Row) bool { return compare(&a, &b) == 0 })
}

// request is the row of a request, or of something else.
func (w *twin) request() (collation.Row, bool) {
	all := w.rows()
	asked := slices.DeleteFunc(slices.Clone(all), func(r collation.Row) bool { return r.Kind != journal.MessageRequest })
	if len(asked) == 0 || w.chance("not a request", 8) {
		return recent(w, "row", all)
	}
	return recent(w, "request", asked)
}

func (w *twin) due() []store.DueRow {
	out, _, err := w.Store.Due(w.ctx, store.MaxSweep)
	mem, _, memErr := w.memory.Due(w.ctx, store.MaxSweep)
	_ = agreeRead(w, "due", out, mem, err, memErr)
	slices.SortFunc(out, func(a, b store.DueRow) int { return order(a.Job, b.Job, a.GUID, b.GUID) })
	return out
}

// work does what an engine and its workers do: it takes a due row and carries it on.
func (w *twin) work() {
	due := w.due()
	if len(due) == 0 {
		w.advance(pick[time.Duration](w, "until", 1, 30, 90, 3600) * second)
		return
	}
	claims := []store.Claim{{
		Row: due[w.upTo("due", len(due)-1)], Send: w.chance("send", 80), Again: pick[time.Duration](w, "again", 0, 1, 60) * second, Session: w.session(),
	}}
	if before, ok := recent(w, "claim", w.claims); ok && w.chance("again", 5) && before.Row.GUID != claims[0].Row.GUID {
		claims = append(claims, before)
	}
	w.claims = append(w.claims, claims[0])
	out, _ := both(w, "claim", func(s store.Store) ([]store.Outgoing, error) { return s.Claim(w.ctx, claims) })
	for i := range out {
		switch r := &out[i].Row; r.Kind {
		case journal.MessageSignal:
			_, _ = w.driven().Deliver(w.ctx, []collation.RowKey{{Job: r.Job, GUID: r.GUID}}, w.mode)
		case journal.MessageStart:
			w.begin(r)
		default:
			w.carry(w.message(r))
		}
	}
}

// begin begins or refuses the child of an order, if that is what the row is.
func (w *twin) begin(row *collation.Row) {
	if row.Activity != "" { // the job has begun
		w.carry(w.message(row))
		return
	}
	order, err := row.Order()
	require.NoError(w, err)
	f, p := w.flows[order.Flow+" 1"], order.Parent
	reply := func(on bool, x *journal.Response) *collation.Row {
		if !on {
			return nil
		}
		return new(order.Outcome(row.Job, x, collation.Micros(w.clock), w.mode))
	}
	if f == nil || order.Fault != "" || w.chance("refuse", 5) {
		_ = w.driven().Refuse(w.ctx, row, reply(p.Turn > 0 || p.Awaited, failed("not_found")))
		return
	}
	_ = w.driven().Spawn(w.ctx, row, request(f, order.Key, string(order.Input)), reply(p.Turn > 0 && !p.Awaited, success(`1`)), w.mode)
}

func request(f *flow.Flow, key, input string) store.Start {
	return store.Start{Flow: ref(f), Active: true, Trigger: f.Trigger().Name, Key: key, Input: []byte(input)}
}

// message is what comes for a row: of a request, a worker's response.
func (w *twin) message(r *collation.Row) *collation.Message {
	if r.Kind != journal.MessageRequest {
		return journaltest.Message(r)
	}
	row := *r
	row.Turn += w.upTo("turn", 20) / 20
	return journaltest.Response(&row, w.response(r))
}

// carry takes messages through transactions, as an engine does, until they are done.
func (w *twin) carry(ms ...*collation.Message) {
	c, _ := w.Committer(w.ctx, true)
	defer c.Close()
	wants := make([]store.Want, len(ms))
	for i, m := range ms {
		wants[i] = journaltest.WantOf(m)
		w.messages = append(w.messages, m)
	}
	for range 20 {
		l, err := c.Load(w.ctx, wants, true)
		if err != nil {
			return
		}
		if w.chance("busy", 3) { // another finds it held
			other, _ := w.Committer(w.ctx, true)
			_, _ = other.Load(w.ctx, wants, false)
			other.Close()
		}
		plans, done, err := w.decide(c, l, ms)
		if err != nil || len(plans) == 0 || w.chance("roll back", 2) {
			_ = c.Rollback(w.ctx)
			return
		}
		if err := c.Commit(w.ctx, plans); err != nil || done || w.chance("leave it", 10) {
			return
		}
		for _, m := range ms {
			m.Entered = m.Kind == journal.MessageLeg1
		}
	}
}

func (w *twin) decide(c store.Committer, l *store.Loaded, ms []*collation.Message) (plans []store.Chained, done bool, err error) {
	done = true
	for _, x := range ms {
		m, st := *x, l.States[x.Job]
		if st == nil {
			continue
		}
		st.Flow = w.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
		p, err := journaltest.Plan(w.ctx, c, st, &m, w.mode)
		if err != nil {
			return nil, false, err
		}
		switch w.upTo("trouble", 80) { // what an engine makes of messages that it cannot handle
		case 79:
			p = collation.Hold(st, &m, w.mode, errBody)
		case 80:
			p = collation.Quarantine(st, &m, w.mode, errBody)
		}
		plans, done = append(plans, store.Chain(&st.Job, p)), done && p.Done
		st.Apply(p)
	}
	return plans, done, nil
}

func success(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(output)}
}

func failed(class string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeInternal, Error: &journal.Failure{Class: class, Message: "drawn"}}
}

func (w *twin) response(r *collation.Row) *journal.Response {
	out := success(fmt.Sprintf(`{"v":%d}`, w.upTo("v", 2)))
	switch w.upTo("response", 9) {
	case 4:
		out = failed("error")
		out.Kind, out.RetryAfter = journal.ResponseFailedAttempt, pick[int64](w, "retry after", 0, 90_000_000)
	case 5:
		out = failed(pick(w, "class", "fatal", "doubt", "confirm", "nondeterminism"))
		out.Kind = pick(w, "kind", journal.ResponseTerminal, journal.ResponseParked)
	case 6:
		out.Output, out.Ref = nil, w.payload(r.Job)
	case 7, 8, 9:
		return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: w.pauses()}
	}
	return out
}

// pauses are what a function waits for next.
func (w *twin) pauses() (out []journal.Pause) {
	for i, p := range []journal.Pause{
		{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap"}, For: 30_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "go"}, Topic: "bell", Key: "a", For: 60_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "gone"}, Topic: "bell", Key: "b"},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "kid"}, Flow: "kid", Input: []byte(`{"n":1}`)},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "none"}, Flow: "nobody", Key: "fixed", Input: []byte(`1`)},
	} {
		if p.Position = fmt.Sprint(i + 1); w.chance(p.Name, 50) || i == 4 && out == nil {
			out = append(out, p)
		}
	}
	return out
}

func (w *twin) payload(job journal.JobID) journal.Digest {
	body := fmt.Appendf(nil, `"payload %d"`, w.upTo("payload", 2))
	digest := journal.Digest(sha256.Sum256(body))
	if w.chance("stored", 80) {
		_ = w.driven().PutPayload(w.ctx, job, digest, body)
	}
	return digest
}

// again carries messages of several rows, or messages that were handled before.
func (w *twin) again() {
	var ms []*collation.Message
	rows := w.rows()
	for range 1 + w.upTo("messages", 3) {
		r, ok := recent(w, "row", rows)
		m := w.message(&r)
		if old, was := recent(w, "message", w.messages); was && (!ok || w.chance("old", 50)) {
			m, ok = new(*old), true
			m.Entered, m.Alone = false, w.chance("alone", 20)
		}
		if ok && !slices.ContainsFunc(ms, func(x *collation.Message) bool { return x.GUID == m.GUID }) {
			ms = append(ms, m)
		}
	}
	w.carry(ms...)
}

func (w *twin) start() {
	var list []store.Start
	for range 1 + w.upTo("more", 5)/4 {
		list = append(list, request(pick(w, "flow", w.main...), pick(w, "key", "k0", "k1", "k2", "k3", "k4", "fixed"), fmt.Sprintf(`{"n":%d}`, w.upTo("n", 1))))
	}
	_, _ = w.driven().Start(w.ctx, list, w.mode)
}

func (w *twin) signal() {
	x := &collation.Signal{
		Topic: "bell", Key: pick(w, "key", "a", "b"), Code: pick(w, "code", 200, 200, 202, 409), All: w.chance("all", 15),
		Payload: json.RawMessage(fmt.Sprint(w.upTo("payload", 3))), Keep: pick(w, "keep", collation.Micros(0), 60_000_000),
	}
	x.GUID = collation.SignalGUID(space, x.Topic, x.Key, fmt.Sprint(w.upTo("guid", 9)))
	_, _ = w.driven().Signal(w.ctx, x, w.mode)
}

func (w *twin) interrupt() {
	r, _ := recent(w, "row", w.rows())
	o := collation.InterruptOrder{Code: 410, Reason: "drawn", Throw: w.chance("throw", 70), Descend: w.chance("descend", 50)}
	row, err := o.Row(collation.AskedInterruptGUID(fmt.Sprint(w.upTo("ask", 2)), r.Job), r.Job, collation.Micros(w.clock))
	require.NoError(w, err)
	_, _ = w.driven().Interrupt(w.ctx, row, w.mode)
}

// operate is an operator's call.
func (w *twin) operate() {
	if w.chance("foreign", 15) {
		_ = w.driven().DeadLetter(w.ctx, collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "drawn"}, []byte{0, 0xff})
	}
	if page, err := w.memory.Jobs(w.ctx, store.JobFilter{Limit: store.MaxPage}); err == nil && w.chance("repair", 20) {
		if j, ok := recent(w, "repaired", page.Jobs); ok {
			_ = w.driven().Repair(w.ctx, j.ID)
			return
		}
	}
	list, err := w.memory.DeadLetters(w.ctx, store.DeadFilter{All: true, Limit: store.MaxPage})
	require.NoError(w, err)
	x, _ := recent(w, "letter", list)
	a := store.Action{ID: x.ID, Who: "ann", Reason: "drawn"}
	switch w.upTo("action", 4) {
	case 0, 1:
		a.Retry = true
	case 2:
		a.Done = []byte(pick(w, "done", `1`, `null`))
	case 3:
		a.Response = success(`"by hand"`)
	case 4:
		a.Response = failed("fatal")
	}
	if e, ok := recent(w, "of effect", w.effects); ok && a.Response == nil && w.chance("named", 50) {
		a.Effect = e.Key
	}
	_ = w.driven().Act(w.ctx, a)
}

// sweep is what an engine does from time to time.
func (w *twin) sweep() {
	switch w.upTo("sweep", 5) {
	case 0, 1:
		_, _ = w.driven().TurnOverdue(w.ctx, store.MaxSweep)
	case 2:
		_, _ = w.driven().ExpireSignals(w.ctx, store.MaxSweep)
	case 3:
		_ = w.done("prune", func(s store.Store) error { // how many markers a store needs is its own affair
			_, err := s.Prune(w.ctx, store.MaxSweep)
			return err
		})
	case 4:
		for more := true; more; {
			more, _ = both(w, "expire", func(s store.Store) (bool, error) { return s.Expire(w.ctx, store.MaxSweep) })
		}
	case 5:
		keys := []collation.RowKey{{Job: journal.JobID{8: 9}, GUID: journal.GUID{8: 9}}}
		if m, ok := recent(w, "message", w.messages); ok {
			keys = append(keys, collation.RowKey{Job: m.Job, GUID: m.Row})
		}
		_ = w.driven().Discard(w.ctx, keys)
	}
}

// worker is one call of a worker.
func (w *twin) worker() {
	r, ok := w.request()
	if !ok {
		return
	}
	l := store.Lease{
		Job: r.Job, Request: r.GUID, Space: space, Generation: 1, Turn: r.Turn + w.upTo("off", 12)/12, Fence: r.Fence,
		Holder: r.Holder, Session: r.Session, Fresh: w.chance("fresh", 60), Timeout: pick[time.Duration](w, "timeout", 0, 10) * second,
	}
	if r.Holder == "" || w.chance("another", 50) { // no two processes have runs of one name
		l.Session = w.session()
		l.Holder = fmt.Sprintf("%s of %d", pick(w, "holder", "ann", "bob"), l.Session)
	}
	if taken, ok := recent(w, "lease", w.leases); ok && w.chance("taken", 40) {
		l = taken
	}
	switch call := w.upTo("call", 12); call {
	case 0, 1, 2, 3:
		n := 1
		if w.chance("exhaust", 3) {
			n = store.MaxRuns + 1
		}
		for range n {
			if x, err := w.driven().Lease(w.ctx, l.Job, l.Request, l.Turn, l.Holder, l.Session); err == nil {
				w.leases = append(w.leases, x)
			}
		}
	case 4:
		if x, err := both(w, "keep", func(s store.Store) (store.Lease, error) { return s.Keep(w.ctx, l) }); err == nil {
			w.leases = append(w.leases, x)
		}
	case 5:
		_ = w.done("hand back", func(s store.Store) error { return s.HandBack(w.ctx, l) })
	default:
		w.effect(l)
	}
}

// effect is one call about an effect of a request; some are of no lawful worker.
func (w *twin) effect(l store.Lease) {
	e := journal.Effect{
		Name: pick(w, "name", "pay", "log"), N: w.upTo("n", 1), Turn: l.Turn, Fence: l.Fence, Position: pick(w, "position", "", "1"),
		Class:  pick(w, "class", store.ClassGuarded, store.ClassGuarded, store.ClassIdempotent, store.ClassPure, store.ClassUndo, store.ClassTx),
		Result: []byte(fmt.Sprint(w.upTo("result", 2))),
	}
	e.Key = sha256.Sum256(fmt.Appendf(nil, "%s %s %d", l.Request, e.Name, e.N))
	if old, ok := recent(w, "an effect", w.effects); ok && w.chance("again", 30) {
		e = old
	}
	w.effects = append(w.effects, e)
	bad, notDone := w.chance("error", 20), w.chance("not done", 25)
	if bad || notDone {
		e.Result, e.Error = nil, failed("declined").Error
	}
	switch {
	case e.Class == store.ClassTx:
		_, _ = w.driven().TxEffect(w.ctx, l, e, func(context.Context, any) (store.TxEnd, error) {
			if bad && notDone {
				return store.TxEnd{}, errBody
			}
			return store.TxEnd{Result: e.Result, Error: e.Error, NotDone: notDone}, nil
		})
	case w.chance("start", 50):
		e.Result, e.Error = nil, nil
		_, _, _ = w.driven().StartEffect(w.ctx, l, e)
	default:
		_, _ = w.driven().FinishEffect(w.ctx, l, e, notDone)
	}
}

// falsify has the next plan falsified: what it makes of it is refused by both.
func (w *twin) falsify() {
	how, nobody := w.upTo("spoil", 9), journal.GUID{8: 3}
	w.spoil = func(p *collation.Plan) {
		switch {
		case how == 0 && len(p.Ledgers) > 0:
			p.Ledgers[0].Before++
		case how == 1 && len(p.CancelWaits) > 0:
			p.CancelWaits[0].Count++
		case how == 2 && len(p.Taken) > 0:
			p.Taken[0].Seen++
		case how == 3 && p.Receipt != nil:
			p.Receipt.New = !p.Receipt.New
		case how == 4 && p.Entry != nil:
			p.Entry.Seq++
		case how == 5:
			p.Semaphore.Before++
		case how == 6:
			p.Delete = append(p.Delete, nobody)
		case how == 7:
			p.Insert = append(p.Insert, p.Insert...)
		case how == 8:
			p.Update = append(p.Update, collation.Row{GUID: nobody, Job: p.Job, Kind: journal.MessageRequest})
		case how == 9:
			p.Waits = append(p.Waits, p.Waits...)
		}
	}
}

// process is the session of one, in both stores.
type process struct{ pg, mem store.Session }

// session is that of a process, mostly of a late one; 0: there is none yet.
func (w *twin) session() int64 {
	if p, ok := recent(w, "session", w.sessions); ok {
		return p.pg.ID()
	}
	return 0
}

// process begins or ends the session of a process.
func (w *twin) process() {
	if p, ok := recent(w, "process", w.sessions); ok && w.chance("end", 50) {
		_ = agree(w, "end session", 0, 0, p.pg.End(w.ctx), p.mem.End(w.ctx))
		return
	}
	is := store.Process{Name: pick(w, "name of a process", "p", "q"), Lease: time.Minute}
	pg, err := w.Store.OpenSession(w.ctx, is)
	require.NoError(w, err)
	mem, err := w.memory.OpenSession(w.ctx, is)
	_ = agree(w, "open session", pg.ID(), mem.ID(), nil, err)
	over, done := context.WithCancel(w.ctx)
	done()
	w.Cleanup(func() { _ = pg.End(over) }) // it gives its connection up
	if w.sessions = append(w.sessions, &process{pg, mem}); len(w.sessions) > most {
		_ = w.sessions[0].pg.End(over)
		w.sessions = w.sessions[1:]
	}
	w.mode.Session = pg.ID()
}
