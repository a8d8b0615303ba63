package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/replay"
)

func online(t *testing.T, d *database, args ...string) clitest.Result {
	t.Helper()
	env := map[string]string{"QUIPU_POSTGRES": "postgres://somewhere", "QUIPU_SPACE": "test"}
	r := command(t, func(_ context.Context, dsn, space string) (reader, error) {
		require.Equal(t, "postgres://somewhere", dsn)
		require.Equal(t, "test", space)
		return d, nil
	}, env, "", args...)
	require.True(t, d.closed)
	return r
}

// A connection string that cannot be read is named by its flag and its variable.
func TestDatabaseOfABadDSN(t *testing.T) {
	t.Parallel()
	for _, r := range []clitest.Result{
		command(t, openPostgres, map[string]string{"QUIPU_POSTGRES": "host=a port=b"}, ""),
		command(t, openPostgres, nil, "", "--postgres", "host=a port=b"),
	} {
		require.Equal(t, exitUnreadable, r.Code)
		require.Contains(t, r.Err, "journal-verify: --postgres (QUIPU_POSTGRES): not a connection string such as postgres://user@host:5432/db")
	}
}

// The command's own way to a database, with a job that was just started there.
func TestPostgresStore(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Space: "test", Migrating: true})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Migrate(t.Context()))
	f, err := flow.New("order").Version("1").Trigger("t").Worker("w", "work").Transition("t", "w").Build()
	require.NoError(t, err)
	ref := collation.RefOf(f)
	_, err = s.Deploy(t.Context(), store.Deployment{Ref: ref, Canonical: f.Canonical()})
	require.NoError(t, err)
	started, err := journaltest.Driven{Store: s}.Start(t.Context(),
		[]store.Start{{Flow: ref, Trigger: "t", Key: "o-1", Input: []byte(`{}`)}}, collation.Mode{})
	require.NoError(t, err)
	require.NoError(t, started[0].Err)
	r := command(t, openPostgres, nil, "", "--postgres", dsn, "--space", "test", "--json", "--job", "o-1")
	require.Equal(t, exitProved, r.Code, r.Out+r.Err)
	v := objects(t, r)[0]
	require.Equal(t, "proved", v.Checks[8].Result)
	require.Equal(t, "open", v.State)
	require.Equal(t, 1, v.OpenCount)
	require.Equal(t, openView{What: "start", GUID: v.Job, Activity: "t", DAD: ",0", Since: 1}, v.Open[0])
	r = command(t, openPostgres, nil, "", "--postgres", dsn, "--space", "test")
	require.Contains(t, r.Out, "1 job, 1 entry, 1 open obligation: proved.")
	none := command(t, openPostgres, nil, "", "--postgres", dsn, "--space", "other")
	require.Equal(t, exitUnreadable, none.Code)
	require.Contains(t, none.Err, "the database has no space other: it has test;")
}

// J7: of a job that has expired it says so, and by when, and proves nothing of it.
func TestExpired_J7(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Space: "test", Migrating: true})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Migrate(t.Context()))
	f, err := flow.New("order").Version("1").Trigger("t").Worker("w", "work").Transition("t", "w").Build()
	require.NoError(t, err)
	ref := collation.RefOf(f)
	_, err = s.Deploy(t.Context(), store.Deployment{Ref: ref, Canonical: f.Canonical()})
	require.NoError(t, err)
	keys := []store.Start{
		{Flow: ref, Trigger: "t", Key: "gone", Input: []byte(`{}`)}, {Flow: ref, Trigger: "t", Key: "here", Input: []byte(`{}`)},
	}
	started, err := journaltest.Driven{Store: s}.Start(t.Context(), keys, collation.Mode{})
	require.NoError(t, err)
	db, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer db.Close(t.Context())
	_, err = db.Exec(t.Context(), "UPDATE quipu_test.jobs SET state = 'interrupted', semaphore = 0, closed = started, closed_seq = 1, tasks_seq = 1, expires_at = 1 WHERE key = 'gone'")
	require.NoError(t, err)
	for more := true; more; {
		more, err = s.Expire(t.Context(), 100)
		require.NoError(t, err)
	}
	_, err = db.Exec(t.Context(), "UPDATE quipu_test.jobs SET expires_at = $1 WHERE key = 'gone' AND state = 'expired'",
		time.Date(2100, 1, 31, 0, 0, 0, 0, time.UTC).UnixMicro())
	require.NoError(t, err)
	id := started[0].Job.String()
	verify := func(args ...string) string {
		r := command(t, openPostgres, nil, "", append([]string{"--postgres", dsn, "--space", "test"}, args...)...)
		require.Equal(t, exitProved, r.Code, r.Out+r.Err)
		return r.Out
	}
	out := verify("--job", id)
	require.Regexp(t, id+`  gone +expired +0 +not proved  only its tombstone is left, since 2100-01-01T00:00:00Z or before\n`, out)
	require.Contains(t, out, "1 job: it has expired, so nothing of it is proved here.")
	require.Contains(t, verify("--quiet"), "2 jobs, 1 entry, 1 open obligation: 1 proved, 0 violated, 0 unreadable, 1 expired.")
	require.NotContains(t, verify("--quiet"), id, "a tombstone is nothing that is looked for")
	v := objects(t, command(t, openPostgres, nil, "", "--postgres", dsn, "--space", "test", "--json", "--job", id))[0]
	require.Equal(t, []string{"expired", "expired", "2100-01-01T00:00:00Z"}, []string{v.State, v.Result, v.KnownExpiredAt})
	_, err = db.Exec(t.Context(), "UPDATE quipu_test.jobs SET expires_at = 1 WHERE key = 'gone'")
	require.NoError(t, err)
	require.Contains(t, verify("--job", id), "not proved  only its tombstone is left\n", "by when is not known")
}

// The bar knows bytes of files or jobs of a database, or neither.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := &progress{of: total{bytes: 200}}
	p.bytes(50)
	p.job()
	p.entries(300)
	require.Equal(t, "[#######·······················]  25 %  1 job, 300 entries, 150 entries/s", p.line(2*time.Second))
	require.Equal(t, "0 jobs, 0 entries, 0 entries/s", (&progress{}).line(0))
	q := &progress{of: total{jobs: 2}}
	q.job()
	require.Contains(t, q.line(time.Second), "50 %")
}

// S7: the chain of the space itself is verified with its jobs, and has lines of its own.
func TestSpaceChain_S7(t *testing.T) {
	t.Parallel()
	body, err := journal.EncodeSpace(&journal.SpaceEntry{Kind: journal.SpaceAccepted, Facts: map[string]string{"check": "fsync-off", "value": "off"}})
	require.NoError(t, err)
	hash := journal.Next(journal.SpaceGenesis("test", journal.GUID{1}), body)
	d := &database{list: jobs(1), chain: replay.SpaceChain{
		Name: "test", ID: journal.GUID{1}, Head: journal.Head{Seq: 1, Hash: hash},
		Entries: []journal.Record{{Seq: 1, Body: body, Hash: hash}},
	}}
	verify := func(args ...string) clitest.Result {
		open := func(context.Context, string, string) (reader, error) { return d, nil }
		return command(t, open, nil, "", append(args, "--postgres", "x", "--space", "test")...)
	}
	r := verify()
	require.Equal(t, exitProved, r.Code, r.Err)
	require.Contains(t, r.Out, "The chain of space test itself, 1 entries:\nV1    seqs are contiguous             proved\n")
	require.NotContains(t, verify("--job", "job-0").Out, "itself", "one job was asked for")
	d.chain.Head.Seq = 2
	r = verify("--json")
	require.Equal(t, exitViolated, r.Code, r.Err)
	require.Contains(t, r.Out, `"chain":"space","result":"violated"`)
	require.Contains(t, r.Out, "the space's row says head 2")
}
