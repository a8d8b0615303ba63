package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

func online(t *testing.T, d *database, args ...string) result {
	t.Helper()
	env := environment{
		getenv: func(name string) string {
			return map[string]string{"QUIPU_POSTGRES": "postgres://somewhere", "QUIPU_SPACE": "test"}[name]
		},
		open: func(_ context.Context, dsn, space string) (reader, error) {
			require.Equal(t, "postgres://somewhere", dsn)
			require.Equal(t, "test", space)
			return d, nil
		},
	}
	r := command(t, env, nil, args...)
	require.True(t, d.closed)
	return r
}

// A connection string that cannot be read is named by its flag and its variable.
func TestDatabaseOfABadDSN(t *testing.T) {
	t.Parallel()
	for _, env := range []environment{
		{open: openPostgres, getenv: func(name string) string { return map[string]string{"QUIPU_POSTGRES": "host=a port=b"}[name] }},
		{open: openPostgres},
	} {
		args := []string{}
		if env.getenv == nil {
			args = []string{"--postgres", "host=a port=b"}
		}
		r := command(t, env, nil, args...)
		require.Equal(t, exitUnreadable, r.code)
		require.Contains(t, r.err, "journal-verify: --postgres (QUIPU_POSTGRES): not a connection string such as postgres://user@host:5432/db")
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
	ref := journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
	_, err = s.Deploy(t.Context(), ref, f.Canonical(), false)
	require.NoError(t, err)
	started, err := journaltest.Driven{Store: s}.Start(t.Context(), []store.Start{{Flow: ref, Trigger: "t", Key: "o-1", Input: []byte(`{}`)}}, collation.Mode{})
	require.NoError(t, err)
	require.NoError(t, started[0].Err)
	env := environment{open: openPostgres}
	r := command(t, env, nil, "--postgres", dsn, "--space", "test", "--json", "--job", "o-1")
	require.Equal(t, exitProved, r.code, r.out+r.err)
	v := r.objects(t)[0]
	require.Equal(t, "proved", v.Checks[8].Result)
	require.Equal(t, "open", v.State)
	require.Equal(t, 1, v.OpenCount)
	require.Equal(t, openView{What: "start", GUID: v.Job, Activity: "t", DAD: ",0", Since: 1}, v.Open[0])
	r = command(t, env, nil, "--postgres", dsn, "--space", "test")
	require.Contains(t, r.out, "1 job, 1 entry, 1 open obligation: proved.")
	none := command(t, env, nil, "--postgres", dsn, "--space", "other")
	require.Equal(t, exitUnreadable, none.code)
	require.Contains(t, none.err, "the database has no space other: it has test;")
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

// chained is a database with a chain of the space itself.
type chained struct {
	*database
	chain replay.SpaceChain
}

func (c *chained) SpaceChain(context.Context) (*replay.SpaceChain, error) { return &c.chain, nil }

// S7: the chain of the space itself is verified with its jobs, and has lines of its own.
func TestSpaceChain_S7(t *testing.T) {
	t.Parallel()
	body, err := journal.EncodeSpace(&journal.SpaceEntry{Kind: journal.SpaceAccepted, Facts: map[string]string{"check": "fsync-off", "value": "off"}})
	require.NoError(t, err)
	hash := journal.Next(journal.SpaceGenesis("test", journal.GUID{1}), body)
	d := &chained{&database{list: jobs(1)}, replay.SpaceChain{
		Name: "test", ID: journal.GUID{1}, Head: journal.Head{Seq: 1, Hash: hash}, Entries: []journal.Record{{Seq: 1, Body: body, Hash: hash}},
	}}
	verify := func(args ...string) result {
		env := environment{open: func(context.Context, string, string) (reader, error) { return d, nil }}
		return command(t, env, nil, append(args, "--postgres", "x", "--space", "test")...)
	}
	r := verify()
	require.Equal(t, exitProved, r.code, r.err)
	require.Contains(t, r.out, "The chain of space test itself, 1 entries:\nV1    seqs are contiguous             proved\n")
	require.NotContains(t, verify("--job", "job-0").out, "itself", "one job was asked for")
	d.chain.Head.Seq = 2
	r = verify("--json")
	require.Equal(t, exitViolated, r.code, r.err)
	require.Contains(t, r.out, `"chain":"space","result":"violated"`)
	require.Contains(t, r.out, "the space's row says head 2")
}
