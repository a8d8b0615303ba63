package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// user opens a connection of a user's, with a table of the user's.
func user(t testing.TB, s *Store) *pgx.Conn {
	t.Helper()
	c := must(pgx.Connect(t.Context(), s.cfg.DSN))(t)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	must(c.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS public.orders (name text)"))(t)
	return c
}

// transaction begins a transaction of the user's that has written.
func transaction(t testing.TB, c *pgx.Conn) Tx {
	t.Helper()
	tx := must(c.Begin(t.Context()))(t)
	must(tx.Exec(t.Context(), "INSERT INTO orders VALUES ($1)", "mine"))(t)
	return tx
}

func keyed(keys ...string) []store.Start {
	starts := make([]store.Start, len(keys))
	for i, k := range keys {
		starts[i] = store.Start{Flow: testFlow, Trigger: "start", Key: k, Input: []byte(`{"n":1}`)}
	}
	return starts
}

// startIn starts jobs in the transaction.
func startIn(t testing.TB, s *Store, tx Tx, keys ...string) []store.Started {
	t.Helper()
	out := must(s.startTx(t.Context(), tx, keyed(keys...)))(t)
	require.Len(t, out, len(keys))
	return out
}

// rows counts the rows of a table.
func (s *Store) rows(t testing.TB, from string) (n int) {
	t.Helper()
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		results, err := c.pg.Exec(t.Context(), "SELECT count(*) FROM "+from).ReadAll()
		if err == nil {
			_, err = fmt.Sscan(string(results[0].Rows[0][0]), &n)
		}
		return err
	}))
	return n
}

var jobTables = []string{"jobs", "entries", "instances", "receipts", "dispatches", "signals"}

// E17: jobs start with the caller's commit: the caller's row and the jobs' rows appear at the
// same moment, due and not published.
func TestE17StartCommits(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx := transaction(t, user(t, s))
	out := startIn(t, s, tx, "a", "b", "a")
	require.NoError(t, out[0].Err)
	var again *store.AlreadyStartedError
	require.ErrorAs(t, out[2].Err, &again)
	require.Equal(t, out[0].Job, again.Job)
	require.ErrorAs(t, startIn(t, s, tx, "a")[0].Err, &again, "it sees what it did itself")
	require.True(t, again.SameFlow && again.SameInput)
	require.ErrorIs(t, failed(s.FindJob(t.Context(), "a")), store.ErrNotFound)
	require.Zero(t, s.rows(t, "public.orders"))
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, s.rows(t, "public.orders"))
	for i, key := range []string{"a", "b"} {
		id := must(s.FindJob(t.Context(), key))(t)
		require.Equal(t, out[i].Job, id)
		require.Equal(t, collation.NewJobID(s.cfg.Space, key, 1), id)
	}
	due, _, err := s.Due(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, due, 2)
	require.Zero(t, due[0].Publication)
	st := load(t, openCommitter(t, s),
		store.Want{Job: out[0].Job, Receipt: out[0].Job.Start(), Row: out[0].Job.Start()})
	require.Equal(t, collation.StartBorn, st.Receipts[out[0].Job.Start()].Ledger)
	require.NotNil(t, st.Rows[out[0].Job.Start()])
}

// E17: the caller's rollback undoes everything, also a rollback to a savepoint.
func TestE17StartRollsBack(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := user(t, s)
	tx := transaction(t, c)
	startIn(t, s, tx, "a", "b")
	must(s.signalTx(t.Context(), tx, signalOf(s, "k", "")))(t)
	require.NoError(t, tx.Rollback(t.Context()))
	for _, table := range jobTables {
		require.Zero(t, s.rows(t, table), table)
	}
	tx = transaction(t, c)
	savepoint := must(tx.Begin(t.Context()))(t)
	startIn(t, s, savepoint, "a")
	must(s.signalTx(t.Context(), savepoint, signalOf(s, "k", "")))(t)
	require.NoError(t, savepoint.Rollback(t.Context()))
	must(tx.Exec(t.Context(), "SAVEPOINT mine"))(t)
	startIn(t, s, tx, "b")
	must(tx.Exec(t.Context(), "ROLLBACK TO mine"))(t)
	startIn(t, s, tx, "c")
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, s.rows(t, "jobs"))
	require.Equal(t, 1, s.rows(t, "dispatches"))
	require.Zero(t, s.rows(t, "signals"))
	must(s.FindJob(t.Context(), "c"))(t)
}

// settings returns all settings of the session, and its prepared statements.
func settings(t testing.TB, tx Tx) map[string]string {
	t.Helper()
	rows := must(tx.Query(t.Context(), `SELECT name, setting FROM pg_settings
		UNION ALL SELECT 'prepared', string_agg(name, ',' ORDER BY name) FROM pg_prepared_statements WHERE NOT from_sql
		UNION ALL SELECT 'schema', current_schema()`, pgx.QueryExecModeExec))(t)
	out := map[string]string{}
	var name string
	var value *string
	must(pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		if value != nil {
			out[name] = *value
		}
		return nil
	}))(t)
	return out
}

// E17: whatever the result, search path and settings of the transaction stay as before, nothing
// stays prepared, and the caller's own tables with the same names are never taken for ours.
func TestE17LeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	startJobs(t, s, "taken")
	c := user(t, s)
	must(c.Exec(t.Context(), `CREATE SCHEMA "Other"; CREATE TABLE "Other".jobs (id text); SET search_path TO "Other", public;
		CREATE TEMP TABLE entries (x int); CREATE TEMP TABLE jobs (key text)`))(t)
	for _, path := range []string{"", `SET LOCAL search_path TO public, "Other"`, "SET search_path TO pg_catalog, public", "SELECT set_config('search_path', '', true)"} {
		tx := must(c.Begin(t.Context()))(t)
		if path != "" {
			must(tx.Exec(t.Context(), path))(t)
		}
		before := settings(t, tx)
		calls := map[string]func(){
			"started": func() { require.NoError(t, startIn(t, s, tx, "k"+path)[0].Err) },
			"taken":   func() { require.Error(t, startIn(t, s, tx, "taken")[0].Err) },
			"refused": func() {
				require.ErrorIs(t, failed(s.startTx(t.Context(), tx,
					[]store.Start{{Flow: testFlow, Trigger: "start", Key: "nul\x00"}})), store.ErrRejected)
			},
			"signal": func() {
				must(s.signalTx(t.Context(), tx, signalOf(s, "k"+path, "")))(t)
			},
			"signal twice": func() {
				must(s.signalTx(t.Context(), tx, signalOf(s, "k"+path, "")))(t)
			},
		}
		for _, name := range []string{"started", "taken", "refused", "signal", "signal twice"} {
			calls[name]()
			require.Equal(t, before, settings(t, tx), "%q: %s", path, name)
		}
		require.NoError(t, tx.Commit(t.Context()))
	}
	require.Equal(t, 5, s.rows(t, "jobs"))
	require.Zero(t, s.rows(t, `"Other".jobs`))
}

// E17: a start waits for another transaction that is starting the same key. Then the job exists,
// or the key is free.
func TestE17ConcurrentStarts(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"StartTx", "Start"} {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprint(by, " ", commits), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				tx := transaction(t, user(t, s))
				id := startIn(t, s, tx, "k")[0].Job
				second := transaction(t, user(t, s))
				answer := make(chan store.Started, 1)
				go func() {
					var out []store.Started
					var err error
					if by == "Start" { // in a transaction of its own
						out, err = s.driven().Start(context.WithoutCancel(t.Context()), keyed("k"), resend)
					} else {
						out, err = s.startTx(context.WithoutCancel(t.Context()), second, keyed("k"))
					}
					if err != nil {
						t.Errorf("start: %v", err)
						out = make([]store.Started, 1)
					}
					answer <- out[0]
				}()
				waitFor(t, s, someoneWaits)
				if commits {
					require.NoError(t, tx.Commit(t.Context()))
					got := devtest.Await(t, "the answer to the start", answer)
					var again *store.AlreadyStartedError
					require.ErrorAs(t, got.Err, &again)
					require.Equal(t, &store.AlreadyStartedError{
						Flow: testFlow, Job: id, Key: "k", SameFlow: true, SameInput: true,
					}, again)
				} else {
					require.NoError(t, tx.Rollback(t.Context()))
					require.NoError(t, devtest.Await(t, "the answer to the start", answer).Err)
				}
				require.NoError(t, second.Commit(t.Context()), "it can go on")
				require.Equal(t, 1, s.rows(t, "jobs"))
			})
		}
	}
}

// E17: nothing is retried inside, errors are those of the ports, and earlier writes of the caller
// stay.
func TestE17Errors(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := user(t, s)
	tx := must(c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	must(tx.Exec(t.Context(), "INSERT INTO orders VALUES ('mine')"))(t)
	startJobs(t, s, "k") // after the snapshot of the transaction
	require.ErrorIs(t, failed(s.startTx(t.Context(), tx, keyed("k"))), store.ErrUnavailable, "the transaction is to be retried")
	require.NoError(t, startIn(t, s, tx, "l")[0].Err, "or goes on")
	bad := signalOf(s, "k", "")
	bad.Payload = []byte("{")
	require.ErrorIs(t, failed(s.signalTx(t.Context(), tx, bad)), store.ErrRejected)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, s.rows(t, "public.orders"))
	require.Equal(t, 2, s.rows(t, "jobs"))
	require.Zero(t, s.rows(t, "signals"))

	_, err := s.startTx(t.Context(), tx, keyed("m"))
	require.ErrorIs(t, err, store.ErrRejected)
	require.ErrorIs(t, err, pgx.ErrTxClosed)
	says := func(err error, words string) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrRejected)
		require.NotErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, words)
		require.NotContains(t, err.Error(), "the database refused")
	}
	says(err, "the transaction is closed")
	_, err = s.startTx(t.Context(), nil, keyed("m"))
	says(err, "the transaction is nil")

	tx = must(c.Begin(t.Context()))(t)
	require.Error(t, failed(tx.Exec(t.Context(), "SELECT 1/0")))
	_, err = s.startTx(t.Context(), tx, keyed("m"))
	says(err, "the transaction is aborted by an earlier error: roll it back")
	require.NoError(t, tx.Rollback(t.Context()))
}

// E17 in a transaction of a pool, with only the engine's rights.
func TestE17PoolAndRole(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "e17" })
	require.NoError(t, s.Roles(t.Context()))
	user(t, s)
	require.NoError(t, s.run(t, "GRANT ALL ON public.orders TO PUBLIC"))
	pool := must(pgxpool.New(t.Context(), s.cfg.DSN))(t)
	defer pool.Close()
	for role, allowed := range map[string]bool{"engine": true, "worker": false, "verifier": false} {
		tx := must(pool.Begin(t.Context()))(t)
		must(tx.Exec(t.Context(), "SET LOCAL ROLE "+pgx.Identifier{RoleName("e17", role)}.Sanitize()))(t)
		_, err := s.startTx(t.Context(), tx, keyed(role))
		if _, signalled := s.signalTx(t.Context(), tx, signalOf(s, role, "")); allowed {
			require.NoError(t, err)
			require.NoError(t, signalled)
		} else {
			requireForbidden(t, err, role, "StartTx")
			requireForbidden(t, signalled, role, "SignalTx")
		}
		_, err = tx.Exec(t.Context(), "INSERT INTO orders VALUES ('his')")
		require.NoError(t, err, "it can go on")
		require.NoError(t, tx.Commit(t.Context()))
	}
	require.Equal(t, 1, s.rows(t, "jobs"))
	require.Equal(t, 3, s.rows(t, "public.orders"))
}

// E17: a signal goes with the commit and is delivered after it. Meanwhile only a sender of the
// same signal waits for the caller.
func TestE17Signal(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	require.NoError(t, register(t, c, id, waitOf(id, 1, "k")))
	tx := transaction(t, user(t, s))
	x := signalOf(s, "k", "first")
	x.Sent = 1 // the caller's clock decides nothing (J5)
	got := must(s.signalTx(t.Context(), tx, x))(t)
	require.Equal(t, store.Signalled{State: store.SignalKept}, got)
	require.Equal(t, collation.Micros(1), x.Sent)
	got = must(s.signalTx(t.Context(), tx, x))(t)
	require.Equal(t, store.Signalled{State: store.SignalKept, Duplicate: true}, got)
	require.NoError(t, register(t, c, id, waitOf(id, 2, "k")), "the mailbox is not locked")
	other := must(s.driven().Signal(t.Context(), signalOf(s, "k", "second"), resend))(t)
	require.Equal(t, waitOf(id, 1, "k").GUID, other.Out[0].Row.GUID, "what is not committed has no place in line")
	same := make(chan store.Signalled, 1)
	go func() {
		got, err := s.driven().Signal(context.WithoutCancel(t.Context()), x, resend)
		if err != nil {
			t.Errorf("signal: %v", err)
		}
		same <- got
	}()
	waitFor(t, s, someoneWaits)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, store.Signalled{State: store.SignalKept, Duplicate: true}, devtest.Await(t, "the answer to the signal", same))

	due, _, err := s.Due(t.Context(), 10)
	require.NoError(t, err)
	var keys []collation.RowKey
	for _, d := range due {
		if d.Kind == journal.MessageSignal {
			require.Zero(t, d.Publication)
			keys = append(keys, collation.RowKey{Job: d.Job, GUID: d.GUID})
		}
	}
	require.Equal(t, []collation.RowKey{mailOf(s, x)}, keys)
	out := must(s.driven().Deliver(t.Context(), keys, resend))(t)
	require.Len(t, out, 1)
	require.Equal(t, waitOf(id, 2, "k").GUID, out[0].Row.GUID)
	got = must(s.driven().Signal(t.Context(), x, resend))(t)
	require.Equal(t, store.Signalled{State: store.SignalConsumed, Duplicate: true}, got)
}

// E17: if another transaction has sent the signal since this one's snapshot, the whole
// transaction must be repeated.
func TestE17SignalOutsideTheSnapshot(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx := must(user(t, s).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	must(tx.Exec(t.Context(), "SELECT 1"))(t)
	x := signalOf(s, "k", "")
	must(s.driven().Signal(t.Context(), x, resend))(t)
	_, err := s.signalTx(t.Context(), tx, x)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotErrorIs(t, err, store.ErrLost)
	_, err = tx.Exec(t.Context(), "SELECT 1")
	require.NoError(t, err, "the transaction can go on")
}
