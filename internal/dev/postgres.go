package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// postgresUser is the superuser of a private cluster.
	postgresUser = "quipu"
	// startWait bounds a start, including crash recovery.
	startWait = 60 * time.Second
	// stopWait bounds a fast stop; after it the stop becomes immediate.
	stopWait = 20 * time.Second
	// readyEvery is how often the status in postmaster.pid is read.
	readyEvery = 10 * time.Millisecond
	// startAttempts bounds the starts that fail because the port is taken or shared memory is
	// still in use; startPause is the pause between them.
	startAttempts = 25
	startPause    = 200 * time.Millisecond
	// maxLogBytes is how much of postgres.log a start keeps.
	maxLogBytes = 16 << 20
	// logTail is how much of the log an error quotes.
	logTail = 2 << 10
)

// StopMode says how to stop Postgres.
type StopMode uint8

const (
	// StopFast ends sessions and writes a checkpoint (SIGINT). It is the zero value.
	StopFast StopMode = iota
	// StopImmediate ends at once; the next start recovers (SIGQUIT, F4).
	StopImmediate
	// StopKill kills only the postmaster, as the kernel might (SIGKILL, F1).
	StopKill
)

func (m StopMode) signal() syscall.Signal {
	switch m {
	case StopImmediate:
		return syscall.SIGQUIT
	case StopKill:
		return syscall.SIGKILL
	default:
		return syscall.SIGINT
	}
}

// PostgresOptions are options of a private cluster; the zero value is fine.
type PostgresOptions struct {
	// BinDir has initdb and postgres. Default: PATH, then pg_config, then the usual places.
	BinDir string
	// Install allows root to install a missing Postgres with apt-get. Progress goes to stderr.
	Install bool
	// Port on 127.0.0.1; 0 takes any free one. Restart keeps it.
	Port int
	// Databases are created with the cluster; plain names ([a-z][a-z0-9_]*).
	Databases []string
	// Settings are further server settings, such as shared_buffers. They cannot override what the
	// promise needs (fsync, full_page_writes, synchronous_commit, 4.4).
	Settings map[string]string
	// Weak are settings that win over all others, for a server that breaks the promise (S7).
	Weak map[string]string
}

// Postgres is a private cluster and its server, a child of this process.
type Postgres struct {
	dir, data, bin string
	password       string
	opts           PostgresOptions
	as             *owner
	release        func() error

	mu   sync.Mutex
	proc *Process // nil while stopped
}

// StartPostgres runs the cluster below dir, which it creates if need be, until Stop or the end of
// this process. Root runs it as the user postgres or nobody; if that user cannot reach dir, the
// cluster is at the place that dir/LOCATION names. Errors: *LockedError for a second owner of
// dir, *MissingError without binaries; others quote the server's log.
func StartPostgres(ctx context.Context, dir string, opts PostgresOptions) (*Postgres, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	for _, name := range opts.Databases {
		if !plainName(name) {
			return nil, fmt.Errorf("start postgres: database name %q: lower-case letters, digits and '_' are allowed, first a letter", name)
		}
	}
	bin, err := binaries(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	release, err := Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := &Postgres{dir: dir, bin: bin, opts: opts, release: release}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres in %s: %w", dir, err), release())
	}
	return p, nil
}

func binaries(ctx context.Context, opts PostgresOptions) (string, error) {
	bin, err := findBinaries(ctx, opts.BinDir)
	if _, missing := errors.AsType[*MissingError](err); !missing || !opts.Install {
		return bin, err
	}
	if err := systemInstaller(os.Stderr).install(ctx); err != nil {
		return "", err
	}
	return findBinaries(ctx, opts.BinDir)
}

func (p *Postgres) open(ctx context.Context) (err error) {
	if p.as, err = clusterOwner(); err != nil {
		return err
	}
	home, err := p.as.home(p.dir)
	if err != nil {
		return err
	}
	p.data = filepath.Join(home, "data")
	if err := p.ensureCluster(ctx, home); err != nil {
		return err
	}
	if err := p.clearStalePID(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

// start runs the server. It tries again if the chosen port was taken before the server used it.
func (p *Postgres) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for try := 1; ; try++ {
		port := p.opts.Port
		if port == 0 {
			var err error
			if port, err = freePort(); err != nil {
				return err
			}
		}
		err := p.startOn(ctx, port)
		if err == nil {
			p.opts.Port = port // so that clients find a restarted server
			return nil
		}
		if try == startAttempts || !retryable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(startPause):
		}
	}
}

// retryable says that the port was taken meanwhile, or that backends of a killed postmaster still
// hold the shared memory.
func retryable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Address already in use") || strings.Contains(text, "shared memory block")
}

func (p *Postgres) startOn(ctx context.Context, port int) error {
	log, err := p.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("postgres log: %w", err)
	}
	cmd := exec.Command(filepath.Join(p.bin, "postgres"), p.args(port)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as.credential()}
	proc, err := StartProcess(cmd)
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx, proc); err != nil {
		_ = proc.signal(syscall.SIGQUIT) // it may have gone already
		<-proc.exited
		return fmt.Errorf("%w; its log ends: %s", err, p.tail(from))
	}
	p.mu.Lock()
	p.proc = proc
	p.mu.Unlock()
	return nil
}

func (p *Postgres) args(port int) []string {
	args := []string{"-D", p.data}
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	for name, value := range p.opts.Settings {
		set(name, value)
	}
	set("listen_addresses", loopback)
	set("port", strconv.Itoa(port))
	set("unix_socket_directories", "") // a socket's path may be too long
	set("logging_collector", "off")
	set("fsync", "on")
	set("full_page_writes", "on")
	set("synchronous_commit", "on")
	for name, value := range p.opts.Weak {
		set(name, value)
	}
	return args
}

// awaitReady reads the status line of postmaster.pid, as pg_ctl does.
func (p *Postgres) awaitReady(ctx context.Context, proc *Process) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		if pid, status := p.postmaster(); pid == proc.pid && status == "ready" {
			return nil
		}
		select {
		case <-proc.exited:
			return fmt.Errorf("postgres ended while starting (%s)", proc.state)
		case <-ctx.Done():
			return fmt.Errorf("postgres is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// postmaster reads pid and status from the data directory's postmaster.pid.
func (p *Postgres) postmaster() (pid int, status string) {
	text, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return 0, ""
	}
	const statusLine = 7 // the eighth, since version 10
	if len(lines) > statusLine {
		status = strings.TrimSpace(lines[statusLine])
	}
	return pid, status
}

// DSN returns the connection string of a database. It has the cluster's password, so do not log
// it (4.5). It stays the same over Restart.
func (p *Postgres) DSN(db string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, p.password),
		Host: net.JoinHostPort(loopback, strconv.Itoa(p.opts.Port)), Path: "/" + db, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// PID returns the postmaster's pid, 0 while it is stopped.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return 0
	}
	return p.proc.pid
}

// Exited returns a channel that is closed when the server ends, by Stop or by itself; nil while
// it is stopped.
func (p *Postgres) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	return p.proc.exited
}

// Stop signals the server, waits for its end, and releases the directory. A fast stop that takes
// over 20 s becomes immediate. It is idempotent.
func (p *Postgres) Stop(mode StopMode) error {
	err := p.halt(mode)
	p.mu.Lock()
	release := p.release
	p.release = nil
	p.mu.Unlock()
	if release != nil {
		err = errors.Join(err, release())
	}
	return err
}

// Restart stops the server in the given mode and starts it again on the same data and port (F4).
func (p *Postgres) Restart(ctx context.Context, mode StopMode) error {
	if err := p.halt(mode); err != nil {
		return err
	}
	return p.start(ctx)
}

func (p *Postgres) halt(mode StopMode) error {
	p.mu.Lock()
	proc := p.proc
	p.proc = nil
	p.mu.Unlock()
	if proc == nil {
		return nil
	}
	if err := proc.Stop(mode.signal(), stopWait, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	return nil
}

func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= 63
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
