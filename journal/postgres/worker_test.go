package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// rowOf reads a row of the job.
func rowOf(t testing.TB, s *Store, job journal.JobID, g journal.GUID) *collation.Row {
	t.Helper()
	v, err := s.Job(t.Context(), job)
	require.NoError(t, err)
	for i := range v.Rows {
		if v.Rows[i].GUID == g {
			return &v.Rows[i]
		}
	}
	return nil
}

var charge = journal.Effect{Key: journal.Digest{7}, Name: "charge", Class: "guarded"}

// E4: the late completion of a parked effect releases the request that was parked for it and ends
// its dead letter, on the request's own chain.
func TestLateCompletionUnparks(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	row := request(t, s, id)
	l, err := s.Lease(t.Context(), id, row.GUID, 1, "w", liveSession(t, s))
	require.NoError(t, err)
	_, _, err = journaltest.Driven{Store: s}.StartEffect(t.Context(), l, charge)
	require.NoError(t, err)
	park(t, s, id, row.GUID)
	done := charge
	done.Result = []byte(`{"ok":true}`)
	x, err := journaltest.Driven{Store: s}.FinishEffect(t.Context(), l, done, false)
	require.NoError(t, err)
	require.Equal(t, store.EffectCompleted, x.State)
	after := rowOf(t, s, id, row.GUID)
	require.Empty(t, after.Held)
	require.False(t, after.Dead)
	require.NotZero(t, after.NextAt)
	letters, err := s.DeadLetters(t.Context(), store.DeadFilter{All: true, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, collation.LetterAnswered, letters[0].State)
	e := lastOfChain(t, s, id, row.GUID)
	require.Equal(t, journal.KindEffectCompleted, e.Kind)
	require.True(t, e.Effect.Late)
	require.Equal(t, row.GUID, e.Updated[0].GUID)
}

// park holds the request as parked, in its next turn, with a dead letter.
func park(t testing.TB, s *Store, id journal.JobID, request journal.GUID) {
	t.Helper()
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id, Row: request})
	p := plan(st)
	x := *st.Rows[request]
	x.Turn++
	x.Rev++
	x.Held, x.Dead, x.NextAt, x.Holder, x.Session = collation.HeldParked, true, collation.Never, "", 0
	p.Update = []collation.Row{x}
	p.Dead = []collation.DeadLetter{{Job: id, Row: request, Kind: x.Kind, Activity: x.Activity, DAD: x.DAD, Reason: "parked"}}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
}

// lastOfChain returns the last entry of a chain.
func lastOfChain(t testing.TB, s *Store, id journal.JobID, chain journal.GUID) *journal.Entry {
	t.Helper()
	var last *journal.Entry
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for r, err := range c.entries(t.Context(), id) {
			if err != nil {
				return err
			}
			if r.Chain != chain {
				continue
			}
			if last, err = journal.Decode(r); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NotNil(t, last)
	return last
}

// E10: an operator's retry of a parked request records its unfinished effect as not done, on the
// request's chain, and one entry on the main chain.
func TestActRetriesParked(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	row := request(t, s, id)
	l, err := s.Lease(t.Context(), id, row.GUID, 1, "w", liveSession(t, s))
	require.NoError(t, err)
	_, _, err = journaltest.Driven{Store: s}.StartEffect(t.Context(), l, charge)
	require.NoError(t, err)
	park(t, s, id, row.GUID)
	letters, err := s.DeadLetters(t.Context(), store.DeadFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.NoError(t, journaltest.Driven{Store: s}.Act(t.Context(), store.Action{ID: letters[0].ID, Retry: true, Who: "me", Reason: "bank says no"}))
	all, err := s.Effects(t.Context(), id, row.GUID)
	require.NoError(t, err)
	require.Equal(t, store.EffectNotDone, all[0].State)
	require.Equal(t, "bank says no", all[0].Error.Message)
	require.Equal(t, journal.KindEffectFailed, lastOfChain(t, s, id, row.GUID).Kind)
	e := lastOfChain(t, s, id, journal.MainChain)
	require.Equal(t, &journal.Operator{Action: "retry", Who: "me", Reason: "bank says no"}, e.Operator)
	require.Equal(t, collation.OperatorGUID(row.GUID, "retry", 0), e.GUID)
	after := rowOf(t, s, id, row.GUID)
	require.Empty(t, after.Held)
	require.Zero(t, after.Runs)
	require.Equal(t, int64(2), after.Effects.Seq)
	require.ErrorIs(t, journaltest.Driven{Store: s}.Act(t.Context(), store.Action{ID: letters[0].ID, Retry: true}), store.ErrStale)
}

// E10: an operator's answer turns the request's row. Only a request can be answered.
func TestActAnswers(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	row := request(t, s, id)
	park(t, s, id, row.GUID)
	answer := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`{"by":"hand"}`)}
	letters, err := s.DeadLetters(t.Context(), store.DeadFilter{Limit: 10})
	require.NoError(t, err)
	require.NoError(t, journaltest.Driven{Store: s}.Act(t.Context(), store.Action{ID: letters[0].ID, Response: answer}))
	after := rowOf(t, s, id, row.GUID)
	require.Equal(t, journal.MessageAnswer, after.Kind)
	r, err := journal.DecodeResponse(after.Body)
	require.NoError(t, err)
	require.Equal(t, `{"by":"hand"}`, string(r.Output))
	_, err = s.Lease(t.Context(), id, row.GUID, 2, "w", liveSession(t, s))
	require.ErrorIs(t, err, store.ErrStale, "no lease is given on a turned row (T1)")

	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id, Row: id.Start()})
	p := plan(st)
	x := *st.Rows[id.Start()]
	x.Rev++
	x.Held, x.Dead = collation.HeldStuck, true
	p.Update, p.Dead = []collation.Row{x}, []collation.DeadLetter{{Job: id, Row: x.GUID, Kind: x.Kind, Reason: "stuck"}}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	letters, err = s.DeadLetters(t.Context(), store.DeadFilter{Limit: 10})
	require.NoError(t, err)
	require.ErrorIs(t, journaltest.Driven{Store: s}.Act(t.Context(), store.Action{ID: letters[0].ID, Response: answer}), store.ErrRejected)
	require.NoError(t, journaltest.Driven{Store: s}.Act(t.Context(), store.Action{ID: letters[0].ID, Retry: true}))
}

// T2: the sweeper waits for no locked row, neither when it claims nor when it looks for late
// ones.
func TestSweepSkipsLockedRows(t *testing.T) {
	t.Parallel()
	s := open(t)
	ids := startJobs(t, s, "a", "b")
	for _, id := range ids {
		request(t, s, id, func(r *collation.Row) { r.WithinAt = r.NextAt })
	}
	held := collation.RequestGUID(ids[0].Start(), 0)
	other, err := pgx.Connect(t.Context(), s.cfg.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(t.Context())) }()
	_, err = other.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "SELECT 1 FROM "+s.schema+".dispatches WHERE guid = $1 FOR UPDATE", [16]byte(held))
	require.NoError(t, err)
	due, _, err := s.Due(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, due, 4)
	claims := make([]store.Claim, len(due))
	for i, d := range due {
		claims[i] = store.Claim{Row: d, Send: true, Again: time.Minute}
	}
	out, err := s.Claim(t.Context(), claims)
	require.NoError(t, err)
	require.Len(t, out, 3)
	late, err := s.Late(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, late, 2, "it is listed, whoever holds it")
	_, err = other.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	n, err := journaltest.Driven{Store: s}.TurnOverdue(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	r, err := journal.DecodeResponse(rowOf(t, s, ids[0], held).Body)
	require.NoError(t, err)
	require.Equal(t, collation.CodeTimeout, r.Code)
	require.Equal(t, "within", r.Error.Class)
}

// J4: markers older than a day are removed, in bounded batches.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := open(t)
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, "INSERT INTO batches SELECT gen_random_uuid(), 1, micros() - 86400000001 FROM generate_series(1, 5)"))
	for _, want := range []int{3, 2, 0} {
		n, err := s.Prune(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

// 1.11: a key whose job is only a tombstone begins its next generation, with other ids.
func TestStartAfterTombstone(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := startJobs(t, s, "k")[0]
	require.NoError(t, s.run(t, "UPDATE jobs SET state = 'expired', semaphore = 0, closed = 1, closed_seq = 1, tasks_seq = 1, expires_at = 1"))
	_, err := s.FindJob(t.Context(), "k")
	require.ErrorIs(t, err, store.ErrNotFound)
	c := openCommitter(t, s)
	l, err := c.Load(t.Context(), []store.Want{{Job: first}}, true)
	require.NoError(t, err)
	require.Equal(t, map[journal.JobID]bool{first: true}, l.Tombstones)
	require.Empty(t, l.States)
	require.NoError(t, c.Rollback(t.Context()))
	second := startJobs(t, s, "k")[0]
	require.Equal(t, collation.NewJobID("test-1", "k", 2), second)
	v, err := s.Job(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, int64(2), v.Generation)
	require.False(t, v.Ended)
	require.Zero(t, v.Closed)
}
