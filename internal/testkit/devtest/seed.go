package devtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/dev"
)

// To make a cluster costs ten times as much as to copy it, so test binaries copy one.
const (
	// seed names its directory, of a user.
	seed = "quipu-seed-%d"
	// seedLasts is after how long it is made anew, since its making may have changed.
	seedLasts = time.Hour
	// seedWait is the pause between two looks whether another process is done with it.
	seedWait = 20 * time.Millisecond
)

// Seed makes the cluster that dev.StartPostgres would make in a directory that every user can enter,
// with an empty database. Whoever starts there, such as `worker dev`, finds it made.
func Seed(t testing.TB, dir, database string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	var pg *dev.Postgres
	if err == nil {
		pg, err = fromSeed(t.Context(), dir, dev.PostgresOptions{Databases: []string{database}})
	}
	if err == nil {
		err = pg.Stop(dev.StopFast)
	}
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
}

// fromSeed starts a server on a copy of the seed. It makes the seed anew if no server starts on that,
// as after an update of Postgres.
func fromSeed(ctx context.Context, dir string, opts dev.PostgresOptions) (*dev.Postgres, error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, fmt.Errorf("%s exists", dir)
	}
	for _, old := range []bool{true, false} {
		if err := copySeed(ctx, dir, old); err != nil {
			return nil, err
		}
		pg, err := dev.StartPostgres(ctx, dir, opts)
		if err == nil {
			return pg, makeDatabases(ctx, pg, opts.Databases)
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		if !old {
			return nil, err
		}
	}
	panic("unreachable")
}

// copySeed copies the seed to dir. It makes the seed if there is none, or if an old one is not asked for.
func copySeed(ctx context.Context, dir string, old bool) error {
	home := filepath.Join(os.TempDir(), fmt.Sprintf(seed, os.Getuid()))
	release, err := dev.Lock(home)
	for ; err != nil && ctx.Err() == nil; release, err = dev.Lock(home) {
		if _, others := errors.AsType[*dev.LockedError](err); !others {
			return err
		}
		time.Sleep(seedWait)
	}
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	whole, begun := filepath.Join(home, "whole"), filepath.Join(home, "begun")
	if info, err := os.Stat(whole); err != nil || !old || time.Since(info.ModTime()) > seedLasts {
		if err := errors.Join(os.Chmod(home, 0o755), os.RemoveAll(whole), os.RemoveAll(begun)); err != nil {
			return err
		}
		pg, err := dev.StartPostgres(ctx, begun, dev.PostgresOptions{})
		if err != nil {
			return err
		}
		err = errors.Join(hashOnce(ctx, pg.DSN("postgres")), pg.Stop(dev.StopFast))
		if err == nil {
			err = os.Rename(begun, whole)
		}
		if err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", whole, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the seed: %w\n%s", err, out)
	}
	return nil
}

// makeDatabases makes the databases that a cluster would have been made with.
func makeDatabases(ctx context.Context, pg *dev.Postgres, names []string) error {
	if len(names) == 0 {
		return nil
	}
	admin, err := pgx.Connect(ctx, pg.DSN("postgres"))
	if err != nil {
		return err
	}
	for _, name := range names {
		_, failed := admin.Exec(ctx, fmt.Sprintf(create, name, empty))
		err = errors.Join(err, failed)
	}
	return errors.Join(err, admin.Close(ctx))
}
