package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	passwordFile = "password"
	logFile      = "postgres.log"
	// doneFile marks a complete cluster. A cluster without it was cut off and is made anew.
	doneFile = "quipu-initialised"
)

// ensureCluster creates the cluster once: checksums, UTF8, C locale, scram passwords, databases.
func (p *Postgres) ensureCluster(ctx context.Context, home string) error {
	passwordPath := filepath.Join(p.dir, passwordFile)
	if _, err := os.Stat(filepath.Join(p.data, doneFile)); err == nil {
		text, err := os.ReadFile(passwordPath)
		if err != nil {
			return fmt.Errorf("cluster without its password: restore the file, or remove %s to begin anew: %w", p.data, err)
		}
		p.password = strings.TrimSpace(string(text))
		return nil
	}
	if err := p.refuseForeign(); err != nil {
		return err
	}
	p.password = rand.Text()
	if err := os.WriteFile(passwordPath, []byte(p.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the password: %w", err)
	}
	if err := p.initdb(ctx, home); err != nil {
		return err
	}
	for _, name := range p.opts.Databases {
		if err := p.single(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
			return err
		}
	}
	done := filepath.Join(p.data, doneFile)
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		return fmt.Errorf("mark the cluster as made: %w", err)
	}
	return p.as.take(done)
}

// refuseForeign removes only a cluster whose creation was cut off. A complete cluster of somebody
// else stays, and is an error.
func (p *Postgres) refuseForeign() error {
	if _, err := os.Stat(p.data); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(p.makingFile()); err != nil {
		return fmt.Errorf("%s holds a cluster that was not made here: take another directory", p.data)
	}
	if err := os.RemoveAll(p.data); err != nil {
		return fmt.Errorf("remove the half-made cluster: %w", err)
	}
	return nil
}

// makingFile returns the path of a file that exists while a cluster is created.
func (p *Postgres) makingFile() string { return filepath.Join(p.dir, "making") }

func (p *Postgres) initdb(ctx context.Context, home string) error {
	if err := os.WriteFile(p.makingFile(), nil, 0o600); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	if err := os.Mkdir(p.data, 0o700); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	if err := p.as.take(p.data); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	// initdb runs as the database's user, who must be able to read the password.
	secret := filepath.Join(home, "initdb-password")
	if err := os.WriteFile(secret, []byte(p.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	defer func() { _ = os.Remove(secret) }()
	if err := p.as.take(secret); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	out, err := p.run(ctx, "", "initdb", "-D", p.data, "-U", postgresUser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--data-checksums")
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastBytes(out, logTail))
	}
	return nil
}

// single runs a statement in single-user mode, before the server starts.
func (p *Postgres) single(ctx context.Context, statement string) error {
	out, err := p.run(ctx, statement+"\n", "postgres", "--single", "-j", "-D", p.data, "postgres")
	// Single-user mode exits with 0 after a failed statement.
	if err == nil && strings.Contains(string(out), "ERROR:") {
		err = errors.New("refused")
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", statement, err, lastBytes(out, logTail))
	}
	return nil
}

func (p *Postgres) run(ctx context.Context, stdin, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, program), args...)
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as.credential()}
	return cmd.CombinedOutput()
}

// clearStalePID handles a postmaster.pid that a kill left behind. This process has the
// directory's lock, so a server that still runs on the data is an orphan and is stopped. If the
// pid is free or belongs to another program, the file would keep the server from starting, so it
// is removed.
func (p *Postgres) clearStalePID(ctx context.Context) error {
	pid, _ := p.postmaster()
	if pid == 0 {
		return nil
	}
	if !p.isPostmaster(pid) {
		err := os.Remove(filepath.Join(p.data, "postmaster.pid"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the stale pid file: %w", err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the orphaned server (pid %d): %w", pid, err)
	}
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for p.isPostmaster(pid) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the orphaned server (pid %d) does not stop: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// isPostmaster says whether pid is a server on this data directory, which is then its working
// directory. Without /proc every live process counts as one.
func (p *Postgres) isPostmaster(pid int) bool {
	if runtime.GOOS != "linux" {
		return syscall.Kill(pid, 0) == nil
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if stat, err := os.ReadFile(filepath.Join(proc, "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
		return false // gone, or a zombie
	}
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	data, err := filepath.EvalSymlinks(p.data)
	return err == nil && cwd == data
}

func (p *Postgres) openLog() (*os.File, error) {
	path := filepath.Join(p.dir, logFile)
	flags := os.O_CREATE | os.O_RDWR | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("postgres log: %w", err)
	}
	return file, nil
}

// tail returns the end of what was logged after from.
func (p *Postgres) tail(from int64) string {
	file, err := os.Open(filepath.Join(p.dir, logFile))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(file, from, maxLogBytes))
	if err != nil {
		return err.Error()
	}
	return lastBytes(text, logTail)
}

func lastBytes(text []byte, n int) string {
	return strings.TrimSpace(string(text[max(len(text)-n, 0):]))
}
