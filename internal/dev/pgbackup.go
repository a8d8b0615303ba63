package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Names beside the data directory of a cluster.
const (
	backupDir  = "backup"
	standbyDir = "standby"
)

// beside returns the path of a directory beside the cluster's data, on the same file system.
func (p *Postgres) beside(name string) string { return filepath.Join(filepath.Dir(p.data), name) }

// Backup copies the running cluster with pg_basebackup, for Restore. A later one replaces it.
func (p *Postgres) Backup(ctx context.Context) error {
	return p.baseBackup(ctx, p.beside(backupDir))
}

// Restore puts the backup in place of the cluster, and starts it on the same port (F7). It uses
// the backup up. With recover the cluster ends its recovery as at a point in time, on a timeline
// of its own. Otherwise it starts like a copy of files: nothing but what is in it is older.
func (p *Postgres) Restore(ctx context.Context, recover bool) error {
	backup := p.beside(backupDir)
	if _, err := os.Stat(filepath.Join(backup, doneFile)); err != nil {
		return fmt.Errorf("restore postgres: no backup: %w", err)
	}
	var err error
	if recover {
		err = p.toPoint(backup)
	}
	if err == nil {
		err = p.replace(ctx, backup)
	}
	if err == nil && recover {
		err = p.recovered(ctx)
	}
	if err != nil {
		return fmt.Errorf("restore postgres: %w", err)
	}
	return nil
}

// autoConf has the settings of a data directory that its server was told.
const autoConf = "postgresql.auto.conf"

// toPoint lets a copy recover to the point in time at which it is consistent, and stay there.
func (p *Postgres) toPoint(data string) error {
	settings := "restore_command = 'false'\nrecovery_target = 'immediate'\nrecovery_target_action = 'pause'\n"
	return errors.Join(p.put(filepath.Join(data, autoConf), settings), p.put(filepath.Join(data, "recovery.signal"), ""))
}

// recovered ends the recovery at its point in time, and takes that away: a standby that is made of
// the cluster would have it, too.
func (p *Postgres) recovered(ctx context.Context) error {
	if err := p.promote(ctx); err != nil {
		return err
	}
	return p.put(filepath.Join(p.data, autoConf), "")
}

// Standby starts a standby of the cluster on another port, which streams its log asynchronously.
// It belongs to the caller, until Promote takes it.
func (p *Postgres) Standby(ctx context.Context) (*Postgres, error) {
	s := &Postgres{
		dir: p.beside("standby-log"), data: p.beside(standbyDir), bin: p.bin, password: p.password, opts: p.opts, as: p.as,
	}
	s.opts.Port = 0
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = p.baseBackup(ctx, s.data, "--write-recovery-conf")
	}
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	return s, nil
}

// Promote moves the address of the cluster to its standby and promotes that (F6). What the
// standby has not received is lost, and so is the old cluster. The standby is stopped; it is p
// from now on.
func (p *Postgres) Promote(ctx context.Context, standby *Postgres) error {
	err := errors.Join(p.halt(StopImmediate), standby.Stop(StopFast))
	if err == nil {
		err = p.replace(ctx, standby.data)
	}
	if err == nil {
		err = p.promote(ctx)
	}
	if err != nil {
		return fmt.Errorf("promote a standby: %w", err)
	}
	return nil
}

// promote ends the recovery of a standby, or of a cluster that is at its point in time.
func (p *Postgres) promote(ctx context.Context) error {
	if out, err := p.run(ctx, "", "pg_ctl", "promote", "-w", "-D", p.data); err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, lastBytes(out, logTail))
	}
	return nil
}

// replace stops the cluster and starts it with other data.
func (p *Postgres) replace(ctx context.Context, data string) error {
	if err := p.halt(StopImmediate); err != nil {
		return err
	}
	if err := os.RemoveAll(p.data); err != nil {
		return err
	}
	if err := os.Rename(data, p.data); err != nil {
		return err
	}
	return p.start(ctx)
}

// baseBackup runs pg_basebackup into a new directory.
func (p *Postgres) baseBackup(ctx context.Context, to string, more ...string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := p.as.take(to); err != nil {
		return err
	}
	args := append([]string{
		"--pgdata=" + to, "--checkpoint=fast", "--wal-method=stream", "--no-password",
		"--host=" + loopback, "--port=" + strconv.Itoa(p.opts.Port), "--username=" + postgresUser,
	}, more...)
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "pg_basebackup"), args...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "PGPASSWORD="+p.password)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as.credential()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, lastBytes(out, logTail))
	}
	return nil
}

// put writes a file of the database's user.
func (p *Postgres) put(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return p.as.take(path)
}
