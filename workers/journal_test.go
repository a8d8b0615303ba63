package workers

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

const payFlow = `flow: order
version: "1"
activities:
  start: {type: trigger}
  pay: {type: worker, topic: pay, input: 7}
transitions:
  start: [pay]
`

// office is a house on the real journal in memory; the test drives the engine.
type office struct {
	*house
	journal *memory.Store
	flow    *flow.Flow
	engine  store.Committer
	job     journal.JobID
}

func newOffice(t *testing.T) *office {
	h := newHouse(t)
	o := &office{house: h, journal: memory.New(memory.Config{Space: "shop"})}
	h.cfg.Store = journaltest.Driven{Store: o.journal}
	_, err := o.journal.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}) // the house's
	require.NoError(t, err)
	f, err := flow.Parse("pay.yaml", []byte(payFlow))
	require.NoError(t, err)
	o.flow = f
	ref := journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
	_, err = o.journal.Deploy(t.Context(), ref, f.Canonical(), false)
	require.NoError(t, err)
	started, err := journaltest.Driven{Store: o.journal}.Start(t.Context(), []store.Start{{Flow: ref, Trigger: "start", Key: "k", Input: []byte(`{}`)}}, collation.Mode{})
	require.NoError(t, err)
	o.job = started[0].Job
	o.engine, err = o.journal.Committer(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(o.engine.Close)
	for range 2 { // start, leg1
		r := o.row()
		o.handle(&collation.Message{Kind: r.Kind, Job: o.job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD})
	}
	require.Equal(t, journal.MessageRequest, o.row().Kind)
	return o
}

func (o *office) view() *store.JobView {
	o.t.Helper()
	v, err := o.journal.Job(o.t.Context(), o.job)
	require.NoError(o.t, err)
	return v
}

func (o *office) row() collation.Row {
	o.t.Helper()
	rows := o.view().Rows
	require.Len(o.t, rows, 1)
	return rows[0]
}

// handle takes one message through the protocol.
func (o *office) handle(m *collation.Message) {
	o.t.Helper()
	h := journaltest.Handler{C: o.engine, Flow: func(journal.FlowRef) *flow.Flow { return o.flow }}
	p, err := h.Handle(o.t.Context(), m)
	require.NoError(o.t, err)
	require.Equal(o.t, collation.Handled, p.Outcome)
}

// request is the message of the request's row.
func (o *office) request() wire.Request { return o.requestOf(o.row()) }

func (o *office) requestOf(r collation.Row) wire.Request {
	return wire.Request{
		Space: "shop", Job: o.job.String(), Key: "k", Generation: 1, Flow: "order", Version: "1", Activity: r.Activity,
		DAD: string(r.DAD), Element: r.Element, Topic: r.Topic, Request: r.GUID.String(), Turn: r.Turn, Attempt: r.Attempt,
		Attempts: 3, Fence: r.Fence, Input: json.RawMessage(r.Body),
	}
}

// heard commits the next answer to the journal.
func (o *office) heard() *wire.Response {
	o.t.Helper()
	m, hint := o.answer()
	r, err := hint.Response.Journal()
	require.NoError(o.t, err)
	row := o.row()
	o.handle(&collation.Message{
		Kind: journal.MessageResponse, Job: o.job, GUID: journal.GUID(m.Header.GUID), Row: row.GUID,
		Activity: hint.Activity, DAD: collation.DAD(hint.DAD), Turn: hint.Turn, Response: r,
	})
	return hint.Response
}

// dies makes a first run whose process dies inside the call.
func (o *office) dies(class effects.Class) {
	q := o.request()
	own, err := o.journal.OpenSession(o.t.Context(), store.Process{Name: "dead", Lease: time.Hour})
	require.NoError(o.t, err)
	s := effects.NewSession(effects.Config{
		Store:    journaltest.Driven{Store: o.journal},
		Lease:    store.Lease{Job: o.job, Request: guid(o.t, q), Space: "shop", Generation: 1, Turn: q.Turn, Fence: q.Fence, Holder: "dead", Session: own.ID()},
		Identity: effects.Identity{Space: "shop", Job: o.job, Generation: 1, Version: "1", Activity: "pay", DAD: q.DAD},
	})
	require.Panics(o.t, func() {
		_, _ = effects.Do(effects.With(o.t.Context(), s), "pay", func(context.Context) (int, error) { panic("kill -9") }, class)
	})
	require.NoError(o.t, own.End(o.t.Context()))
}

func TestJournalAHandlerEndsItsJob(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	Handle(o.reg, "pay", func(ctx context.Context, in int) (int, error) { return in + 1, nil }, Class(effects.Guarded))
	o.open()
	o.send(o.request(), 1)
	require.Equal(t, "8", string(o.heard().Output))
	require.Equal(t, journal.JobCompleted, o.view().State)
}

func TestJournalAfterACrashInTheCall(t *testing.T) {
	t.Parallel()
	for class, want := range map[effects.Class]journal.ResponseKind{
		effects.Idempotent: journal.ResponseTerminal,
		effects.Guarded:    journal.ResponseParked,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			Handle(o.reg, "pay", func(context.Context, int) (int, error) { return 1, nil }, Class(class))
			o.dies(class)
			o.open()
			o.send(o.request(), 2)
			require.Equal(t, want, o.heard().Kind)
			if want == journal.ResponseTerminal {
				require.Equal(t, journal.JobCompleted, o.view().State)
				return
			}
			require.Equal(t, collation.HeldParked, o.row().Held)
		})
	}
}

func TestJournalFailedTriesKeepTheKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var keys []string
	Handle(o.reg, "pay", func(ctx context.Context, _ int) (int, error) {
		if keys = append(keys, effects.Key(ctx)); len(keys) == 1 {
			return 0, errors.New("connection reset")
		}
		return 0, Fail(402, "declined")
	}, Class(effects.Idempotent))
	o.open()
	o.send(o.request(), 1)
	require.Equal(t, journal.ResponseFailedAttempt, o.heard().Kind)
	require.Equal(t, 2, o.row().Attempt)
	o.send(o.request(), 2)
	r := o.heard()
	require.Equal(t, []any{journal.ResponseTerminal, 402, ClassBusiness}, []any{r.Kind, r.Code, r.Error.Class})
	require.Equal(t, journal.JobFailed, o.view().State)
	require.Equal(t, keys[0], keys[1])
}
