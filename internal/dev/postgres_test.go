package dev_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// psql runs one statement with the client that comes with the server.
func psql(t *testing.T, dsn, statement string) string {
	t.Helper()
	path, err := exec.LookPath("psql")
	require.NoError(t, err, "psql is needed for this test")
	out, err := exec.CommandContext(t.Context(), path, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-c", statement).CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// 4.4: a private cluster has no setting that preflight refuses.
func TestPostgresKeepsThePromise(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "data_checksums": "on",
		"server_encoding": "UTF8", "shared_buffers": "64MB", "max_connections": "200", "listen_addresses": "127.0.0.1",
	} {
		require.Equal(t, want, psql(t, dsn, "SHOW "+setting), setting)
	}
	require.Equal(t, "C", psql(t, dsn, "SELECT datcollate FROM pg_database WHERE datname = current_database()"))
	require.NotEqual(t, dsn, devtest.Postgres(t), "a database per call")
}

func TestPostgresNeedsThePassword(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	user, host, found := strings.Cut(dsn, "@")
	require.True(t, found)
	open := user[:strings.LastIndex(user, ":")] + "@" + host
	cmd := exec.CommandContext(t.Context(), "psql", "-X", "-w", "-d", open, "-c", "SELECT 1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "password")
}

// One cluster survives every stop, an orphan, a stale pid file, and a new owner of the directory
// (F1, F4).
func TestPostgresSurvives(t *testing.T) {
	t.Parallel()
	dir := devtest.Dir(t)
	ctx := t.Context()
	opts := dev.PostgresOptions{Databases: []string{"quipu"}}
	pg, err := dev.StartPostgres(ctx, dir, opts)
	require.NoError(t, err)
	dsn := pg.DSN("quipu")
	psql(t, dsn, "CREATE TABLE kept (n int)")

	_, err = dev.StartPostgres(ctx, dir, opts)
	var locked *dev.LockedError
	require.ErrorAs(t, err, &locked, "a directory has one server")

	for n, mode := range []dev.StopMode{dev.StopFast, dev.StopImmediate, dev.StopKill} {
		psql(t, dsn, "INSERT INTO kept VALUES (1)")
		before := pg.PID()
		require.NoError(t, pg.Restart(ctx, mode))
		require.NotEqual(t, before, pg.PID())
		require.Equal(t, dsn, pg.DSN("quipu"), "clients find a restarted server where it was")
		require.Equal(t, strconv.Itoa(n+1), psql(t, dsn, "SELECT count(*) FROM kept"))
	}

	gone := pg.Exited()
	require.NoError(t, syscall.Kill(pg.PID(), syscall.SIGKILL))
	devtest.Await(t, "the end of the server", gone)
	require.NoError(t, pg.Stop(dev.StopFast), "a server that is dead already")
	require.Zero(t, pg.PID())

	stalePID(t, filepath.Join(dir, "data", "postmaster.pid"))
	pg, err = dev.StartPostgres(ctx, dir, opts)
	require.NoError(t, err, "the stale file names a living process that is no server")
	require.Equal(t, "3", psql(t, pg.DSN("quipu"), "SELECT count(*) FROM kept"))
	require.NoError(t, pg.Stop(dev.StopFast))
	require.NoError(t, pg.Stop(dev.StopFast), "idempotent")
}

// stalePID makes the pid file name this test's parent, as reuse of pids might.
func stalePID(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err, "a killed server leaves its pid file")
	_, rest, found := strings.Cut(string(text), "\n")
	require.True(t, found)
	require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(os.Getppid())+"\n"+rest), 0o600))
}

// If the database's user cannot enter the directory, root's cluster is elsewhere; a file says
// where, and it is found again.
func TestPostgresBelowAPrivateDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	dir := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(dir, 0o700))
	pg, err := dev.StartPostgres(t.Context(), dir, dev.PostgresOptions{})
	require.NoError(t, err)
	psql(t, pg.DSN("postgres"), "CREATE TABLE kept (n int)")
	require.NoError(t, pg.Stop(dev.StopFast))
	place, err := os.ReadFile(filepath.Join(dir, "LOCATION"))
	require.NoError(t, err)
	home := strings.TrimSpace(string(place))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })

	pg, err = dev.StartPostgres(t.Context(), dir, dev.PostgresOptions{})
	require.NoError(t, err)
	require.Equal(t, "0", psql(t, pg.DSN("postgres"), "SELECT count(*) FROM kept"))
	require.NoError(t, pg.Stop(dev.StopFast))
}

func TestPostgresSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := dev.StartPostgres(t.Context(), t.TempDir(), dev.PostgresOptions{BinDir: "/nonexistent"})
	var missing *dev.MissingError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "apt-get install postgresql")

	_, err = dev.StartPostgres(t.Context(), t.TempDir(), dev.PostgresOptions{Databases: []string{`x"; DROP`}})
	require.ErrorContains(t, err, "database name")

	dir := devtest.Dir(t)
	_, err = dev.StartPostgres(t.Context(), dir, dev.PostgresOptions{Settings: map[string]string{"shared_buffers": "never"}})
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers"`, "the server's log is quoted")

	foreign := devtest.Dir(t)
	require.NoError(t, os.Mkdir(filepath.Join(foreign, "data"), 0o700))
	_, err = dev.StartPostgres(t.Context(), foreign, dev.PostgresOptions{})
	require.ErrorContains(t, err, "not made here")
}

// orphanDir tells the test binary, run as a child, where to leave an orphan.
const orphanDir = "QUIPU_DEV_TEST_ORPHAN_DIR"

// The server dies with a parent that was killed.
func TestPostgresDiesWithItsParent(t *testing.T) {
	if dir := os.Getenv(orphanDir); dir != "" {
		pg, err := dev.StartPostgres(t.Context(), dir, dev.PostgresOptions{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(pg.PID())), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	t.Parallel()
	dir := devtest.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPostgresDiesWithItsParent$")
	child.Env = append(os.Environ(), orphanDir+"="+dir)
	require.Error(t, child.Run(), "it kills itself")
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return dead(pid) }, 20*time.Second, 20*time.Millisecond)
}

func dead(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
