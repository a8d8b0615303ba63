package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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

// space is a small engine over a real store: it starts jobs and handles their messages to the
// end, with workers that fail, record effects and get parked.
type space struct {
	testing.TB
	store  store.Store
	c      store.Committer
	flow   *flow.Flow
	others map[string]*flow.Flow // that awaits may start, by name
	mode   collation.Mode
	choose func(int) int
	worker int64 // the session of the worker; 0: not opened yet
}

func (s *space) start(keys ...string) []journal.JobID {
	s.Helper()
	ref := journal.FlowRef{Name: s.flow.Name(), Version: s.flow.Version(), Digest: journal.Digest(s.flow.Digest())}
	_, err := s.store.Deploy(s.Context(), ref, s.flow.Canonical(), false)
	require.NoError(s, err)
	var ids []journal.JobID
	for _, k := range keys {
		out, err := journaltest.Driven{Store: s.store}.Start(s.Context(), []store.Start{{Flow: ref, Trigger: "t", Key: k, Input: []byte(`{"n":1}`)}}, s.mode)
		require.NoError(s, err)
		require.NoError(s, out[0].Err)
		ids = append(ids, out[0].Job)
	}
	return ids
}

// run handles open rows of the job, in any order, until none is left or the steps are used up.
func (s *space) run(id journal.JobID, steps int) {
	s.Helper()
	for range steps {
		v, err := s.store.Job(s.Context(), id)
		require.NoError(s, err)
		if len(v.Rows) == 0 {
			return
		}
		row := v.Rows[s.choose(len(v.Rows))]
		if row.Held != "" {
			s.release(row.GUID)
			continue
		}
		s.handle(s.message(&row))
	}
}

// message returns the message of a row; a worker answers a request.
func (s *space) message(r *collation.Row) *collation.Message {
	m := &collation.Message{
		Kind: r.Kind, Job: r.Job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Turn: r.Turn,
	}
	switch r.Kind {
	case journal.MessageAnswer:
		m.GUID = r.Answers()
		m.Response, _ = journal.DecodeResponse(r.Body) // of a request turned by its own step 1 what it said is recorded
	case journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		response, err := journal.DecodeResponse(r.Body)
		require.NoError(s, err)
		m.Response = response
	case journal.MessageRequest:
		m.Kind, m.GUID = journal.MessageResponse, collation.ResponseGUID(r.GUID, r.Turn)
		m.Response = s.work(r)
	}
	return m
}

func (s *space) work(r *collation.Row) *journal.Response {
	s.Helper()
	if s.worker == 0 {
		own, err := s.store.OpenSession(s.Context(), store.Process{Name: "w", Lease: time.Hour})
		require.NoError(s, err)
		s.Cleanup(func() { _ = own.End(context.Background()) }) // with the store, it may be closed already
		s.worker = own.ID()
	}
	l, err := s.store.Lease(s.Context(), r.Job, r.GUID, r.Turn, "w", s.worker)
	require.NoError(s, err)
	e := journal.Effect{Key: journal.Digest(append(r.GUID[:], r.GUID[:]...)), Name: "charge", Class: "guarded"}
	row, _, err := journaltest.Driven{Store: s.store}.StartEffect(s.Context(), l, e)
	require.NoError(s, err)
	if r.Topic == replaytest.FunctionTopic {
		if suspended := s.suspend(r, l); suspended != nil {
			return suspended
		}
	}
	failure := &journal.Failure{Class: "error", Message: "no luck"}
	choice := s.choose(12)
	if choice == 0 { // the handler died between start and end
		return &journal.Response{Kind: journal.ResponseParked, Code: 500, Error: failure}
	}
	if row.State == store.EffectStarted {
		e.Result = []byte(`{"ok":true}`)
		_, err = journaltest.Driven{Store: s.store}.FinishEffect(s.Context(), l, e, false)
		require.NoError(s, err)
	}
	switch choice {
	case 1:
		return &journal.Response{Kind: journal.ResponseFailedAttempt, Code: 503, Error: failure}
	case 2:
		return &journal.Response{Kind: journal.ResponseTerminal, Code: 409, Error: failure}
	}
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: fmt.Appendf(nil, `{"again":%t,"turn":%d}`, s.choose(3) == 0, r.Turn)}
}

// release lets an operator retry a row that is held for a dead letter (E10).
func (s *space) release(row journal.GUID) {
	s.Helper()
	letters, err := s.store.DeadLetters(s.Context(), store.DeadFilter{Limit: store.MaxPage})
	require.NoError(s, err)
	i := slices.IndexFunc(letters, func(d store.DeadView) bool { return d.Letter.Row == row })
	require.GreaterOrEqual(s, i, 0)
	require.NoError(s, journaltest.Driven{Store: s.store}.Act(s.Context(), store.Action{ID: letters[i].ID, Retry: true, Who: "ann", Reason: "looked"}))
}

// handle handles a message to its end, or dies between two of its commits.
func (s *space) handle(m *collation.Message) {
	s.Helper()
	for !s.once(m) && s.choose(4) > 0 {
		m.Entered = true
	}
}

// once decides and commits one plan of a message.
func (s *space) once(m *collation.Message) (done bool) {
	s.Helper()
	p, err := journaltest.Handler{C: s.c, Flow: s.flowOf, Mode: s.mode}.Once(s.Context(), m)
	require.NoError(s, err)
	return p.Done
}

func (s *space) flowOf(ref journal.FlowRef) *flow.Flow {
	if f := s.others[ref.Name]; f != nil {
		return f
	}
	return s.flow
}

// requireVerified runs jobs in a store, some to their end and some not, and
// verifies them there.
func requireVerified(t *testing.T, st store.Store, mode collation.Mode) {
	c, err := st.Committer(t.Context(), true)
	require.NoError(t, err)
	defer c.Close()
	s := &space{
		TB: t, store: st, c: c, mode: mode, choose: rand.New(rand.NewPCG(1, 2)).IntN,
		flow: replaytest.Tree(replaytest.Options{Activities: 5, Choose: rand.New(rand.NewPCG(5, 5)).IntN}),
	}
	const jobs = 8
	var keys []string
	for i := range jobs {
		keys = append(keys, "k"+strconv.Itoa(i))
	}
	for i, id := range s.start(keys...) {
		s.run(id, 1+i*10)
	}
	env := environment{open: func(context.Context, string, string) (reader, error) { return unclosed{st}, nil }}
	r := command(t, env, nil, "--postgres", "x", "--space", "test", "--json")
	require.Equal(t, exitProved, r.code, r.out+r.err)
	objects := r.objects(t)
	require.Len(t, objects, jobs)
	states := make(map[string]int)
	for _, v := range objects {
		states[v.State]++
		require.Equal(t, "proved", v.Checks[8].Result)
	}
	require.Greater(t, len(states), 1, "open and closed jobs are wanted: %v", states)
}

// unclosed leaves closing to the test.
type unclosed struct{ store.Store }

func (unclosed) Close() {}

var modes = map[string]collation.Mode{"normal": {}, "fold": {Fold: true}, "stepwise": {Stepwise: true}}

// I3, I7: after real histories a store has exactly what its journal gives.
func TestMemoryStoreVerifies(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireVerified(t, memory.New(memory.Config{Space: "test"}), mode)
		})
	}
}

// I3, I7, and the command's own way to a database.
func TestPostgresVerifies(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := devtest.Postgres(t)
			pg, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Space: "test", Migrating: true})
			require.NoError(t, err)
			st := &journaltest.Thrifty{Store: pg}
			defer st.Close()
			require.NoError(t, pg.Migrate(t.Context()))
			requireVerified(t, st, mode)

			env := environment{open: openPostgres}
			r := command(t, env, nil, "--postgres", dsn, "--space", "test")
			require.Equal(t, exitProved, r.code, r.out+r.err)
			require.Contains(t, r.out, "8 proved, 0 violated, 0 unreadable")
			none := command(t, env, nil, "--postgres", dsn, "--space", "other")
			require.Equal(t, exitUnreadable, none.code)
			require.Contains(t, none.err, "the database has no space other: it has test;")
		})
	}
}
