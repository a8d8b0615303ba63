package differential

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

const second = time.Second

// anyRequest is the row of a request, or of something else.
func (p *pair) anyRequest() (collation.Row, bool) {
	if p.chance("not a request", 8) {
		return recent(p, "row", p.rows(""))
	}
	return recent(p, "request", p.rows(journal.MessageRequest))
}

// respond gives a worker's response to a request.
func (p *pair) respond(r *collation.Row) {
	row := *r
	if p.chance("another turn", 5) {
		row.Turn += pick(p, "off", 1, -1)
	}
	p.batch([]*collation.Message{journaltest.Response(&row, p.response(r))}, p.spoil())
}

// spoil draws how a plan is falsified: mostly not.
func (p *pair) spoil() string {
	if !p.chance("spoil", 7) {
		return ""
	}
	return pick(p, "how", sorted(spoils)...)
}

func (p *pair) response(r *collation.Row) *journal.Response {
	switch p.upTo("response", 11) {
	case 0, 1, 2, 3:
		return success(fmt.Sprintf(`{"v":%d}`, p.upTo("v", 2)))
	case 4:
		out := failure(journal.ResponseFailedTry, "error")
		out.RetryAfter = pick[int64](p, "retry after", 0, 90_000_000)
		out.Error.Data, out.Error.Stack = pick(p, "data", nil, []byte(`{"n":1}`)), pick(p, "stack", "", "at a:1")
		return out
	case 5:
		return failure(journal.ResponseTerminal, "fatal")
	case 6:
		return failure(journal.ResponseParked, pick(p, "class", "doubt", "confirm", "nondeterminism"))
	case 7:
		out := success("")
		out.Output, out.Ref = nil, p.payload(r.Job)
		return out
	}
	return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: p.pauses()}
}

// pauses are what a function waits for next.
func (p *pair) pauses() []journal.Pause {
	all := []journal.Pause{
		{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: "1"}, For: 30_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "night", Position: "2"}, For: 1e12},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "go", Position: "3"}, Topic: "bell", Key: "a", For: 60_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "gone", Position: "4"}, Topic: "bell", Key: "b"},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "kid", Position: "5"}, Flow: "kid", Input: []byte(`{"n":1}`)},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "none", Position: "6"}, Flow: "nobody", Key: "fixed", Input: []byte(`1`)},
	}
	var out []journal.Pause
	for i := range all {
		if p.chance(all[i].Name, 50) {
			out = append(out, all[i])
		}
	}
	if len(out) == 0 {
		out = all[:1]
	}
	return out
}

func (p *pair) payload(job journal.JobID) journal.Digest {
	body := fmt.Appendf(nil, `"payload %d"`, p.upTo("payload", 2))
	digest := journal.Digest(sha256.Sum256(body))
	if p.chance("wrong digest", 5) {
		digest[0]++
	}
	if p.chance("stored", 80) {
		_ = p.done("put payload", func(_ int, s store.Store) error {
			return journaltest.Driven{Store: s}.PutPayload(p.ctx, job, digest, body)
		})
	}
	return digest
}

// worker is one call of a worker.
func (p *pair) worker() {
	r, ok := p.anyRequest()
	if !ok {
		return
	}
	l := p.lease(&r)
	ttl := pick[time.Duration](p, "ttl", 0, 5, 60, 3600) * second
	switch p.upTo("call", 12) {
	case 0, 1, 2:
		p.took(both(p, "lease", func(_ int, s store.Store) (store.Lease, error) {
			return journaltest.Driven{Store: s}.Lease(p.ctx, r.Job, r.GUID, l.Turn, l.Holder, ttl)
		}))
	case 3:
		p.took(both(p, "heartbeat", func(_ int, s store.Store) (store.Lease, error) { return s.Heartbeat(p.ctx, l, ttl) }))
	case 4:
		_ = p.done("hand back", func(_ int, s store.Store) error { return s.HandBack(p.ctx, l) })
	case 5:
		_, _ = both(p, "input", func(_ int, s store.Store) ([]byte, error) { return s.Input(p.ctx, r.Job, r.GUID) })
		p.payload(r.Job)
	case 6:
		if p.chance("exhaust", 10) {
			for range store.MaxRuns + 1 {
				p.took(both(p, "lease", func(_ int, s store.Store) (store.Lease, error) {
					return journaltest.Driven{Store: s}.Lease(p.ctx, r.Job, r.GUID, l.Turn, l.Holder, ttl)
				}))
			}
		}
	default:
		p.effect(l)
	}
}

func (p *pair) took(l store.Lease, err error) {
	if err == nil {
		p.leases = append(p.leases, l)
	}
}

// lease is one that was taken, or one that a worker would begin with.
func (p *pair) lease(r *collation.Row) store.Lease {
	if l, ok := recent(p, "lease", p.leases); ok && p.chance("taken", 40) {
		return l
	}
	l := store.Lease{
		Job: r.Job, Request: r.GUID, Space: space, Generation: 1, Turn: r.Turn, Fence: r.Fence,
		Holder: pick(p, "holder", "ann", "bob"),
	}
	if r.Holder != "" && p.chance("its holder", 80) {
		l.Holder = r.Holder
	}
	if p.chance("fresh", 50) {
		l.TTL = pick[time.Duration](p, "first ttl", 5, 60) * second
	}
	if p.chance("bounded", 30) {
		l.Timeout = 10 * second
	}
	if p.chance("off", 8) {
		l.Turn++
	}
	return l
}

type started struct {
	Row   store.EffectRow
	Taken bool
}

// effect is one call about an effect of a request.
func (p *pair) effect(l store.Lease) {
	e := p.drawEffect(&l)
	p.effects = append(p.effects, e)
	switch p.upTo("effect", 6) {
	case 0, 1, 2:
		e.Result, e.Error = nil, nil
		_, _ = both(p, "start of "+e.Class+" "+e.Name, func(_ int, s store.Store) (started, error) {
			row, taken, err := journaltest.Driven{Store: s}.StartEffect(p.ctx, l, e)
			return started{row, taken}, err
		})
	case 6:
		e.Class = pick(p, "class of tx", store.ClassTx, store.ClassTx, store.ClassTx, store.ClassGuarded)
		end, err := p.end(&e)
		calls := [2]int{}
		_, _ = both(p, "tx "+e.Name, func(i int, s store.Store) (store.EffectRow, error) {
			return journaltest.Driven{Store: s}.TxEffect(p.ctx, l, e, func(context.Context, any) (store.TxEnd, error) {
				calls[i]++
				return end, err
			})
		})
		p.same("calls of tx", calls[0], calls[1])
	default:
		notDone := p.chance("not done", 25)
		if notDone {
			e.Result, e.Error = nil, &journal.Failure{Class: "refused", Message: "not done"}
		}
		_, _ = both(p, fmt.Sprintf("finish of %s %s, not done: %t", e.Class, e.Name, notDone), func(_ int, s store.Store) (store.EffectRow, error) {
			return journaltest.Driven{Store: s}.FinishEffect(p.ctx, l, e, notDone)
		})
	}
}

func (p *pair) end(e *journal.Effect) (store.TxEnd, error) {
	switch p.upTo("end", 5) {
	case 0:
		return store.TxEnd{}, errBody
	case 1:
		return store.TxEnd{Error: &journal.Failure{Class: "no", Message: "no"}, NotDone: true}, nil
	case 2:
		return store.TxEnd{Error: &journal.Failure{Class: "no", Message: "no"}}, nil
	}
	return store.TxEnd{Result: e.Result}, nil
}

// drawEffect draws an effect, or one that was drawn before; some are of no lawful
// worker.
func (p *pair) drawEffect(l *store.Lease) journal.Effect {
	if e, ok := recent(p, "one of the request", p.stand(l)); ok && p.chance("of the request", 50) {
		return e
	}
	if e, ok := recent(p, "an effect", p.effects); ok && p.chance("again", 20) {
		return e
	}
	e := journal.Effect{
		Name: pick(p, "name", "pay", "log"), N: p.upTo("n", 1),
		Class:    pick(p, "class", store.ClassGuarded, store.ClassGuarded, store.ClassIdempotent, store.ClassPure, store.ClassUndo),
		Position: pick(p, "position", "", "1"), Turn: l.Turn, Fence: l.Fence,
		Result: []byte(fmt.Sprint(p.upTo("result", 2))),
	}
	of := l.Request.String()
	if p.chance("anybody's", 10) {
		of = ""
	}
	e.Key = sha256.Sum256(fmt.Appendf(nil, "%s %s %d", of, e.Name, e.N))
	if p.chance("error", 15) {
		e.Result, e.Error = nil, &journal.Failure{Class: "declined", Message: "no"}
	}
	return e
}

// stand are the effects of a request as they are, to be ended or met again.
func (p *pair) stand(l *store.Lease) []journal.Effect {
	list, err := p.memory.Effects(p.ctx, l.Job, l.Request)
	require.NoError(p, err)
	var out []journal.Effect
	for i := range list {
		f := &list[i]
		out = append(out, journal.Effect{
			Key: f.Key, Name: f.Name, N: f.N, Class: f.Class, Position: f.Position, Turn: l.Turn, Fence: l.Fence,
			Result: []byte(fmt.Sprint(p.upTo("result", 2))),
		})
	}
	return out
}
