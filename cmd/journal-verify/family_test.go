package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// sweep handles due rows of all jobs, in any order, and lets time pass if there are none, until
// the steps are used up.
func (s *space) sweep(steps int, pass func()) {
	s.Helper()
	for range steps {
		due, _, err := s.store.Due(s.Context(), store.MaxSweep)
		require.NoError(s, err)
		switch {
		case len(due) == 0:
			s.signal()
			s.releaseAll()
			pass()
		case s.choose(30) == 0:
			s.signal()
		case s.choose(60) == 0:
			s.interrupt(&due[s.choose(len(due))])
		default:
			s.handleDue(&due[s.choose(len(due))])
		}
	}
}

// handleDue handles the message of one row, as an engine does.
func (s *space) handleDue(d *store.DueRow) {
	s.Helper()
	if d.Kind == journal.MessageSignal {
		_, err := journaltest.Driven{Store: s.store}.Deliver(s.Context(), []collation.RowKey{{Job: d.Job, GUID: d.GUID}}, s.mode)
		require.NoError(s, err)
		return
	}
	v, err := s.store.Job(s.Context(), d.Job)
	if errors.Is(err, store.ErrNotFound) {
		s.child(d.Job)
		return
	}
	require.NoError(s, err)
	i := slices.IndexFunc(v.Rows, func(r collation.Row) bool { return r.GUID == d.GUID })
	require.GreaterOrEqual(s, i, 0)
	s.handle(s.message(&v.Rows[i]))
}

// child begins or refuses a job that another one ordered. A row that nobody ordered is an
// interrupt of a refused job.
func (s *space) child(id journal.JobID) {
	s.Helper()
	row, err := journaltest.Driven{Store: s.store}.Order(s.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		err = journaltest.Driven{Store: s.store}.Discard(s.Context(), []collation.RowKey{{Job: id, GUID: id.Start()}})
		require.NoError(s, err)
		return
	}
	require.NoError(s, err)
	o, err := row.Order()
	require.NoError(s, err)
	now := row.NextAt
	f := s.others[o.Flow]
	if flow.IsBuiltin(o.Flow) {
		f, err = flow.Builtin(o.Flow, o.Version)
		require.NoError(s, err)
		s.others[o.Flow] = f // of one topic
	}
	if f == nil {
		reply := o.Refusal(id, http.StatusNotFound, "not_found", "no such flow", now, s.mode)
		require.NoError(s, journaltest.Driven{Store: s.store}.Refuse(s.Context(), row, &reply))
		return
	}
	var reply *collation.Row
	if !o.Parent.Awaited && o.Parent.Turn > 0 {
		r := o.Outcome(id, &journal.Response{
			Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: fmt.Appendf(nil, `{"id":%q}`, o.Key),
		}, now, s.mode)
		reply = &r
	}
	err = journaltest.Driven{Store: s.store}.Spawn(s.Context(), row, store.Start{
		Flow: s.ref(f), Trigger: f.Trigger().Name, Key: o.Key, Input: o.Input,
	}, reply, s.mode)
	if taken := (*store.AlreadyStartedError)(nil); errors.As(err, &taken) {
		no := o.Refusal(id, http.StatusConflict, "conflict", "the key is taken", now, s.mode)
		err = journaltest.Driven{Store: s.store}.Refuse(s.Context(), row, &no)
	}
	require.NoError(s, err)
}

func (s *space) ref(f *flow.Flow) journal.FlowRef {
	s.Helper()
	ref := journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
	_, err := s.store.Deploy(s.Context(), ref, f.Canonical(), false)
	require.NoError(s, err)
	return ref
}

// signal sends a signal from outside; code 200 ends any wait.
func (s *space) signal() {
	s.Helper()
	topic, key := []string{"go", "paid"}[s.choose(2)], []string{"k1", "k2"}[s.choose(2)]
	_, err := journaltest.Driven{Store: s.store}.Signal(s.Context(), &collation.Signal{
		GUID:  journal.GUID{0: 0x51, 1: byte(s.choose(256)), 2: byte(s.choose(256)), 3: byte(s.choose(256))},
		Topic: topic, Key: key, Code: []int{200, 202, 200, 409}[s.choose(4)], Payload: []byte(`{"s":1}`), All: s.choose(4) == 0,
	}, s.mode)
	require.NoError(s, err)
}

func (s *space) interrupt(d *store.DueRow) {
	s.Helper()
	if _, err := s.store.Job(s.Context(), d.Job); err != nil {
		return // a signal's, or that of a child that has not begun
	}
	o := &collation.InterruptOrder{Code: 410, Reason: "enough", Throw: s.choose(4) > 0, Descend: s.choose(2) > 0}
	row, err := o.Row(collation.AskedInterruptGUID(fmt.Sprint(s.choose(1<<30)), d.Job), d.Job, d.Now)
	require.NoError(s, err)
	_, _, err = journaltest.Driven{Store: s.store}.Interrupt(s.Context(), row, s.mode)
	require.NoError(s, err)
}

// releaseAll lets an operator retry everything that is held for a dead letter (E10).
func (s *space) releaseAll() {
	s.Helper()
	letters, err := s.store.DeadLetters(s.Context(), store.DeadFilter{Limit: store.MaxPage})
	require.NoError(s, err)
	for _, l := range letters {
		err := journaltest.Driven{Store: s.store}.Act(s.Context(), store.Action{ID: l.ID, Retry: true, Who: "ann", Reason: "looked"})
		if !errors.Is(err, store.ErrStale) {
			require.NoError(s, err)
		}
	}
}

// requireFamilies runs flows with all types of activities in a store, with their child jobs, and
// verifies the store at several points. pass lets time pass.
func requireFamilies(t *testing.T, st store.Store, mode collation.Mode, seed uint64, wakes *atomic.Int64, pass func()) {
	c, err := st.Committer(t.Context(), true)
	require.NoError(t, err)
	defer c.Close()
	choose := rand.New(rand.NewPCG(seed, 6)).IntN
	o := replaytest.Options{Every: true, Activities: 25, Trouble: true, Functions: true, Choose: choose}
	s := &space{
		TB: t, store: st, c: c, mode: mode, choose: choose, flow: replaytest.Mixed(o), others: map[string]*flow.Flow{},
	}
	for _, f := range replaytest.Children(o) {
		s.others[f.Name()] = f
	}
	s.ref(s.flow)
	for i := range 6 {
		out, err := journaltest.Driven{Store: st}.Start(t.Context(), []store.Start{{
			Flow: s.ref(s.flow), Trigger: "t", Key: fmt.Sprint("mixed-", i), Input: []byte(`{"list":["a","b","c"],"n":1,"none":[]}`),
		}}, mode)
		require.NoError(t, err)
		require.NoError(t, out[0].Err)
	}
	_, err = journaltest.Driven{Store: st}.Start(t.Context(), []store.Start{{
		Flow: s.ref(s.others["patient"]), Trigger: "t", Key: "victim", Input: []byte(`{}`),
	}}, mode)
	require.NoError(t, err)
	env := environment{open: func(context.Context, string, string) (reader, error) { return unclosed{st}, nil }}
	for range 12 {
		s.sweep(30, pass)
		r := command(t, env, nil, "--postgres", "x", "--space", "test")
		require.Equal(t, exitProved, r.code, r.out+r.err)
	}
	for _, v := range command(t, env, nil, "--postgres", "x", "--space", "test", "--json").objects(t) {
		wakes.Add(int64(v.Counts.Wakes))
	}
}

// requireWakes fails the test at its end if no function was woken in any of its stores.
func requireWakes(t *testing.T) *atomic.Int64 {
	wakes := new(atomic.Int64)
	t.Cleanup(func() { require.Positive(t, wakes.Load(), "no function was woken") })
	return wakes
}

// I3, I7: at every point a store with waits, timers, children and elements has exactly what the
// journals give.
func TestMemoryFamiliesVerify(t *testing.T) {
	t.Parallel()
	wakes := requireWakes(t)
	for name, mode := range modes {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				now := int64(1_700_000_000_000_000)
				st := memory.New(memory.Config{Space: "test", Now: func() int64 { now++; return now }})
				requireFamilies(t, st, mode, seed, wakes, func() { now += (13 * time.Hour).Microseconds() })
			})
		}
	}
}

func TestPostgresFamiliesVerify(t *testing.T) {
	t.Parallel()
	wakes := requireWakes(t)
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg, err := postgres.Open(t.Context(), postgres.Config{DSN: devtest.Postgres(t), Space: "test", Migrating: true})
			require.NoError(t, err)
			st := &journaltest.Thrifty{Store: pg}
			defer st.Close()
			require.NoError(t, pg.Migrate(t.Context()))
			requireFamilies(t, st, mode, 2, wakes, func() {})
		})
	}
}
