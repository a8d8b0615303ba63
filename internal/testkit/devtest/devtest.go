package devtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/internal/dev"
)

const (
	// startWait bounds the start of a server.
	startWait = 2 * time.Minute
	// dirPattern names the directories of test clusters below os.TempDir.
	dirPattern = "quipu-devtest-"
	// shared is the directory of the cluster there.
	shared = "pg"
	// memory is a file system in memory, and room the free space that it must have: JetStream takes
	// three quarters of what is free, and the streams of a space with the usual limits are 3 GiB.
	memory = "/dev/shm"
	room   = 6 << 30
	// create copies a database. Copying files costs a tenth of logging pages.
	create = "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy"
	empty  = "template0"
	drop   = "DROP DATABASE %s (FORCE)"
)

// cluster is the test binary's one Postgres.
var cluster struct {
	once  sync.Once
	err   error
	pg    *dev.Postgres
	dir   string
	names atomic.Int64

	mu    sync.Mutex
	admin *pgx.Conn // makes the databases; a connection or a program for each costs more

	templates sync.Map // of Copy: what is copied → *template
}

// template is a database that Copy copies.
type template struct {
	once sync.Once
	name string
	err  error
}

// Tests runs the tests of a binary: a *testing.M or a wrapper.
type Tests interface {
	// Run returns the exit code.
	Run() int
}

// Main runs the tests, stops the shared Postgres, checks that no goroutine is left, and exits
// with the result.
func Main(m Tests, opts ...goleak.Option) { os.Exit(Run(m, opts...)) }

// Run is Main for a TestMain with its own clean-up: it returns the exit code.
func Run(m Tests, opts ...goleak.Option) int {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a test that checks a log has its own logger
	if os.Getenv("TMPDIR") == "" && roomy(memory) {
		_ = os.Setenv("TMPDIR", memory) // it cannot fail: the name is valid
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "devtest:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(opts...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "devtest: goroutines left:", err)
		code = 1
	}
	return code
}

// roomy says that a directory exists and has room. In memory the servers write as always but on a
// fast disk, and what a test writes need not survive the machine.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail > room/uint64(fs.Bsize) //nolint:gosec // the size of a block
}

func stop() error {
	if cluster.pg == nil {
		return nil
	}
	err := cluster.admin.Close(context.Background())
	return errors.Join(err, cluster.pg.Stop(dev.StopImmediate), os.RemoveAll(cluster.dir)) // nothing has to be kept
}

// Postgres returns the DSN of a fresh, empty database for this test, with a superuser's role. The
// database is dropped when the test ends.
func Postgres(t testing.TB) (dsn string) {
	t.Helper()
	return dropped(t, empty)
}

// Copy is Postgres with a copy of what prepare has put into an empty database. It is called once for
// each what in a test binary: to migrate a database costs ten times as much as to copy it.
func Copy(t testing.TB, what string, prepare func(ctx context.Context, dsn string) error) (dsn string) {
	t.Helper()
	made, _ := cluster.templates.LoadOrStore(what, new(template))
	from := made.(*template)
	from.once.Do(func() {
		name, dsn := database(t, empty)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWait) // others wait for it, too
		defer cancel()
		from.name, from.err = name, prepare(ctx, dsn)
	})
	if from.err != nil || from.name == "" {
		t.Fatalf("devtest: prepare %s: %v", what, from.err)
	}
	return dropped(t, from.name)
}

// dropped makes a database that the test's end drops.
func dropped(t testing.TB, from string) (dsn string) {
	t.Helper()
	name, dsn := database(t, from)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		if err := administer(ctx, fmt.Sprintf(drop, name)); err != nil {
			t.Errorf("devtest: %v", err)
		}
	})
	return dsn
}

// Kept returns the DSN of a fresh, empty database that exists until the test binary ends.
func Kept(t testing.TB) (dsn string) {
	t.Helper()
	_, dsn = database(t, empty)
	return dsn
}

// database copies a database of the shared Postgres.
func database(t testing.TB, from string) (name, dsn string) {
	t.Helper()
	cluster.once.Do(func() { cluster.err = start() })
	if cluster.err != nil {
		t.Fatalf("devtest: %v", cluster.err)
	}
	name = "t" + strconv.FormatInt(cluster.names.Add(1), 10)
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	if err := administer(ctx, fmt.Sprintf(create, name, from)); err != nil {
		t.Fatalf("devtest: %v", err)
	}
	return name, cluster.pg.DSN(name)
}

// administer runs a statement on the shared Postgres.
func administer(ctx context.Context, statement string) error {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	_, err := cluster.admin.Exec(ctx, statement)
	return err
}

// Database makes an empty database on the test's own server, and returns its DSN. It is dropped
// when the test ends.
func Database(t testing.TB, pg *dev.Postgres, name string) (dsn string) {
	t.Helper()
	do := func(statement string) {
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		admin, err := pgx.Connect(ctx, pg.DSN("postgres")) // the server may have been replaced meanwhile
		if err == nil {
			_, err = admin.Exec(ctx, statement)
			err = errors.Join(err, admin.Close(ctx))
		}
		if err != nil {
			t.Errorf("devtest: %v", err)
		}
	}
	do(fmt.Sprintf(create, name, empty))
	t.Cleanup(func() { do(fmt.Sprintf(drop, name)) })
	return pg.DSN(name)
}

func start() error {
	sweep()
	dir, err := os.MkdirTemp("", dirPattern)
	if err != nil {
		return err
	}
	cluster.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil { // the database's user must be able to enter it
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	cluster.pg, err = small(ctx, filepath.Join(dir, shared), dev.PostgresOptions{Settings: map[string]string{"max_connections": "200"}})
	if err == nil {
		cluster.admin, err = pgx.Connect(ctx, cluster.pg.DSN("postgres"))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// sweep removes the directories of killed test binaries, whose servers died with them. A
// directory in use is locked and stays. A young one stays too, since it may not be locked yet.
func sweep() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		release, err := dev.Lock(filepath.Join(dir, shared))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir) // the next sweep tries again
		_ = release()
	}
}

// NATS starts an embedded server with JetStream on files for this test, and shuts it down when
// the test ends.
func NATS(t testing.TB) *dev.NATS {
	t.Helper()
	return NATSWith(t, dev.NATSOptions{})
}

// User is a user of a NATS server with the rights of a text, which the server reads as it reads its
// configuration: what `quipu nats-permissions` prints.
func User(t testing.TB, name, rights string) *server.User {
	t.Helper()
	var read server.Options
	text := fmt.Sprintf("authorization: { users: [ { user: %q, password: unused, %s } ] }", name, rights)
	if err := read.ProcessConfigString(text); err != nil {
		t.Fatalf("devtest: %v\n%s", err, text)
	}
	return read.Users[0]
}

// NATSWith is NATS with options.
func NATSWith(t testing.TB, opts dev.NATSOptions) *dev.NATS {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	n, err := dev.StartNATS(ctx, t.TempDir(), opts)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	t.Cleanup(func() {
		if err := n.Shutdown(); err != nil {
			t.Errorf("devtest: %v", err)
		}
	})
	return n
}

// NATSOf is a server of the test's own, with options that dev does not know.
func NATSOf(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(startWait) {
		t.Fatal("devtest: the NATS server is not ready")
	}
	return s
}
