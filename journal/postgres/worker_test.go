package postgres

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// rowOf reads a row of the job.
func rowOf(t testing.TB, s *Store, job journal.JobID, g journal.GUID) *collation.Row {
	t.Helper()
	v := must(s.Job(t.Context(), job))(t)
	for i := range v.Rows {
		if v.Rows[i].GUID == g {
			return &v.Rows[i]
		}
	}
	return nil
}

// J4: markers older than a day are removed, in bounded batches.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := open(t)
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, "INSERT INTO batches SELECT gen_random_uuid(), 1, micros() - 86400000001 FROM generate_series(1, 5)"))
	for _, want := range []int{3, 2, 0} {
		n := must(s.Prune(t.Context(), 3))(t)
		require.Equal(t, want, n)
	}
}

// lastOfChain returns the last entry of a chain.
func lastOfChain(t testing.TB, s *Store, id journal.JobID, chain journal.GUID) *journal.Entry {
	t.Helper()
	var last *journal.Entry
	require.NoError(t, s.Audit(t.Context(), id, func(_ *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		for r, err := range entries {
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

// E10: an operator's action waits for a row whose dead letter ends meanwhile. The action is too
// late, whatever it would do to the row as it is then.
func TestActOnALetterThatJustEnded(t *testing.T) {
	t.Parallel()
	s := open(t)
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, `INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, at)
		SELECT job, guid, kind, activity, dad, 'parked', 'was it paid?', 0, 1 FROM dispatches`))
	require.NoError(t, s.run(t, "UPDATE dispatches SET held = 'parked', dead = true"))
	list := must(s.DeadLetters(t.Context(), store.DeadFilter{Limit: 10}))(t)
	require.Len(t, list, 1)
	completion := blocker(t, s, "UPDATE dispatches SET held = NULL, dead = false; UPDATE dead_letters SET state = 'answered'")
	acted := make(chan error, 1)
	go func() {
		acted <- s.driven().Act(t.Context(), store.Action{ID: list[0].ID, Done: []byte(`1`), Who: "ann"})
	}()
	waitFor(t, s, someoneWaits)
	must(completion.Exec(t.Context(), "COMMIT"))(t)
	require.ErrorIs(t, devtest.Await(t, "the answer to the action", acted), store.ErrStale)
}

// W8: a session survives its connection: the next renewal uses a new one.
func TestSessionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	s := open(t)
	x := must(s.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}))(t)
	row := request(t, s, startJobs(t, s, "k")[0])
	must(s.Lease(t.Context(), row.Job, row.GUID, 1, "w", x.ID()))(t)
	for range 2 {
		require.NoError(t, x.(*session).alive.conn.pg.Conn().Close())
		require.Error(t, failed(x.Renew(t.Context(), store.Doing{})))
		must(x.Renew(t.Context(), store.Doing{}))(t)
	}
	require.Equal(t, x.ID(), rowOf(t, s, row.Job, row.GUID).Session)
	require.NoError(t, x.(*session).alive.conn.pg.Conn().Close())
	require.Error(t, x.End(t.Context()))
	require.NoError(t, x.End(t.Context()), "it may be repeated")
	require.Zero(t, rowOf(t, s, row.Job, row.GUID).Session)
}

// W8: the look at dead sessions follows a renewal, and may be stopped in between, as by a database
// that stands still. Then nobody was renewed meanwhile, and nobody is declared dead.
func TestW8ALookThatComesLateEndsNobody(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	x := must(s.OpenSession(t.Context(), store.Process{Name: "looks", Lease: time.Hour}))(t).(*session)
	t.Cleanup(func() { _ = x.End(context.Background()) })
	other := must(s.OpenSession(t.Context(), store.Process{Name: "other", Lease: time.Hour}))(t)
	t.Cleanup(func() { _ = other.End(context.Background()) })
	for renewed, alive := range map[time.Duration]int{59 * time.Minute: 2, time.Minute: 1} {
		require.NoError(t, s.run(t, fmt.Sprintf(`UPDATE sessions SET since = 1, dead = false,
			renewed_at = micros() - CASE WHEN id = %d THEN %d ELSE 3600000001 END`, x.ID(), renewed.Microseconds())))
		require.NoError(t, x.slow.call(t.Context(), "end sessions", "session_end_dead", nil, pInt(x.ID())))
		require.Equal(t, alive, s.rows(t, "sessions WHERE NOT dead"), "renewed %v ago", renewed)
	}
}
