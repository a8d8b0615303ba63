package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// lossy is a space on a cluster of its own, whose runtime has one job that pays once it is let go.
type lossy struct {
	*space
	pg    *dev.Postgres
	rt    *quipu.Runtime
	letGo chan struct{}
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	t.Parallel()
	pg := devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"shop"}})
	l := &lossy{
		space: &space{t: t, env: map[string]string{"QUIPU_POSTGRES": pg.DSN("shop"), "QUIPU_NATS": devtest.NATS(t).URL(), "USER": "ada"}},
		pg:    pg, letGo: make(chan struct{}),
	}
	reg := workers.New()
	workers.Handle(reg, "pay", func(ctx context.Context, _ any) (string, error) {
		select {
		case <-l.letGo:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		return effects.Do(ctx, "pay", func(context.Context) (string, error) { return "paid", nil }, effects.Guarded)
	})
	var err error
	l.rt, err = quipu.Open(t.Context(),
		quipu.Config{Postgres: l.env["QUIPU_POSTGRES"], NATS: l.env["QUIPU_NATS"], Workers: reg, Logger: devtest.Logger(t)})
	require.NoError(t, err)
	t.Cleanup(l.rt.Close)
	devtest.Work(t, l.rt.Run)
	l.deploy("order", "1", "pay", "{}")
	l.ok("", "start", "order", "order-1", "--input", `{"name":"Ada"}`)
	return l
}

// until waits for something.
func (l *lossy) until(what string, is func() bool) {
	l.t.Helper()
	require.Eventually(l.t, is, time.Minute, 50*time.Millisecond, what)
}

// noticed waits until the process says that the database is another one, or that it is not.
func (l *lossy) noticed(another bool) {
	l.t.Helper()
	l.until("what the process says of the database", func() bool {
		err := l.rt.Check(l.t.Context())
		return another && errors.Is(err, quipu.ErrAnotherDatabase) || !another && err == nil
	})
}

// beats waits for two beats.
func (l *lossy) beats() {
	l.t.Helper()
	mark := func() int64 {
		m, _, err := below.Witness(l.t.Context(), l.rt)
		require.NoError(l.t, err)
		return m.Beat
	}
	before := mark()
	l.until("two beats", func() bool { return mark() >= before+2 })
}

// page runs the commands of a section of the page, as they stand there, and returns what each
// printed.
func (l *lossy) page(section string) (said []string) {
	l.t.Helper()
	text, err := os.ReadFile("../../docs/recover.md")
	require.NoError(l.t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(l.t, found, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "quipu ") {
			continue
		}
		if strings.HasPrefix(line, "quipu dead ls") {
			l.until("a dead letter", func() bool { return strings.Contains(l.ok("", "dead", "ls"), "order-1") })
		}
		var args []string
		// the page quotes with '
		for i, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '\'' }) {
			if i%2 == 1 {
				args = append(args, part)
				continue
			}
			for j, bare := range strings.Split(part, `"`) {
				if j%2 == 1 {
					args = append(args, bare)
				} else {
					args = append(args, strings.Fields(bare)...)
				}
			}
		}
		r := l.do("", args[1:]...)
		require.Zero(l.t, r.Code, "%s: %s", line, r.Err)
		said = append(said, r.Out+r.Err)
	}
	require.NotEmpty(l.t, said)
	return said
}

// S13, F6: a synchronous standby is promoted. docs/recover.md, as it stands there.
func TestPageAboutAPromotion_S13(t *testing.T) {
	l := newLossy(t)
	l.promote()
	l.noticed(true)
	require.Contains(t, l.fails(1, "", "start", "order", "order-2", "--input", `{"name":"Ada"}`).Err, "quipu recover")
	said := l.page("A standby was promoted")
	require.Contains(t, said[0], "no process works here: the database is another one")
	require.Contains(t, said[1], "nothing was changed")
	require.Contains(t, said[2], "epoch 1 has ended, the processes go on in epoch 2")
	l.noticed(false)
	close(l.letGo)
	l.ok("", "wait", "order-1", "--timeout", "1m")
	require.Contains(t, l.ok("", "recover"), "nothing is to be recovered")

	l.page("Promotions beforehand")
	l.promote()
	l.until("the process accepts the promotion", func() bool { return strings.Contains(l.ok("", "recover"), "(epoch 3)") })
	l.noticed(false)
	l.ok("", "start", "order", "order-3", "--input", `{"name":"Ada"}`)
	l.ok("", "wait", "order-3", "--timeout", "1m")
}

// promote promotes a synchronous standby.
func (l *lossy) promote() {
	l.t.Helper()
	standby, err := l.pg.Standby(l.t.Context())
	require.NoError(l.t, err)
	db, err := pgx.Connect(l.t.Context(), l.pg.DSN("postgres"))
	require.NoError(l.t, err)
	defer db.Close(context.Background())
	for _, do := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		_, err := db.Exec(l.t.Context(), do)
		require.NoError(l.t, err)
	}
	l.until("the standby is synchronous", func() bool {
		var n int
		err := db.QueryRow(l.t.Context(), "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n)
		return err == nil && n == 1
	})
	l.beats()
	require.NoError(l.t, l.pg.Promote(l.t.Context(), standby))
}

// S13, F7: a backup is restored. docs/recover.md, as it stands there.
func TestPageAboutARestore_S13(t *testing.T) {
	l := newLossy(t)
	require.NoError(t, l.pg.Backup(t.Context()))
	close(l.letGo)
	l.ok("", "wait", "order-1", "--timeout", "1m")
	l.beats()
	require.NoError(t, l.pg.Restore(t.Context(), true))
	l.noticed(true)
	require.Contains(t, l.fails(codeRefused, "", "recover").Err, "--lost-writes")
	said := l.page("A backup was restored")
	require.Contains(t, said[0], "nothing was changed")
	for _, list := range said[:2] {
		require.Contains(t, list, "1 open requests may have gone on")
		require.Contains(t, list, "order-1")
	}
	l.ok("", "wait", "order-1", "--timeout", "1m")
	got := objects(t, l.ok("", "recover", "--lost-writes", "--dry-run", "-o", "json"))
	require.Empty(t, got[0]["requests"])
	require.Equal(t, true, got[0]["dryRun"])
}

// S13, S2: after a rotation at once nobody believes the mark that stands in NATS. The command says
// what to do next, and both ways that it names work.
func TestRecoverAfterARotation_S13(t *testing.T) {
	t.Parallel()
	l := &lossy{space: &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_NATS": devtest.NATS(t).URL(), "USER": "ada"}}}
	engine := func() (stop func()) {
		rt, err := quipu.Open(t.Context(), quipu.Config{Postgres: l.env["QUIPU_POSTGRES"], NATS: l.env["QUIPU_NATS"]})
		require.NoError(t, err)
		t.Cleanup(rt.Close)
		l.rt = rt
		return devtest.Work(t, rt.Run)
	}
	stop := engine()
	l.until("a mark", func() bool { m, _, err := below.Witness(t.Context(), l.rt); return err == nil && m.Beat > 0 })
	stop()
	l.ok("", "keys", "rotate", "--now")
	said := l.fails(cli.CodeFailed, "", "recover", "--dry-run").Err
	require.Contains(t, said, "repeat this")
	require.Contains(t, said, "--nats ''")
	require.Contains(t, l.ok("", "recover", "--dry-run", "--nats", ""), "nothing is to be recovered")
	engine()
	l.until("a mark by the new key", func() bool { return l.do("", "recover", "--dry-run").Code == 0 })
}
