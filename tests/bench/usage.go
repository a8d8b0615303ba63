package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of /proc's times (USER_HZ).
const ticksPerSecond = 100

// cpu is the processor time of this process and of the private Postgres.
func (b *bench) cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	own := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if b.pg == nil {
		return own
	}
	return own + processTime(b.pg.PID())
}

// processTime is the time of a process, its living children, and those that
// it has waited for.
func processTime(pid int) time.Duration {
	total := spent(fields(pid))
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		id, _ := strconv.Atoi(filepath.Base(p))
		if f := fields(id); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			total += spent(f)
		}
	}
	return total
}

// machineTime is the time of all processes of the machine.
func machineTime() time.Duration {
	raw, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(raw), "\n")
	ticks := 0
	for i, s := range strings.Fields(first) {
		if i == 4 || i == 5 || i > 8 { // idle, waiting for disks, guests that are in others
			continue
		}
		n, _ := strconv.Atoi(s) // the first is no number
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// fields are those of the stat of a process, from its state on.
func fields(pid int) []string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may hold spaces
	return strings.Fields(rest)
}

// spent is the time of a process, and of the children that it has waited for.
func spent(fields []string) time.Duration {
	if len(fields) < 15 {
		return 0
	}
	ticks := 0
	for _, s := range fields[11:15] {
		n, _ := strconv.Atoi(s)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// written is what a server wrote to a part of its WAL.
type written struct {
	wal     int64 // bytes
	rows    int64 // inserted, updated and deleted
	commits int64 // transactions that wrote and committed
}

// position is where the server's WAL ends, in bytes.
func (b *bench) position(ctx context.Context) (at int64, err error) {
	err = sql(ctx, b.dsn, `SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8`, &at)
	return at, err
}

const countWritten = `SELECT
	coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" ~ '^Heap2?/(INSERT|UPDATE|HOT_UPDATE|DELETE|MULTI_INSERT)'), 0)::int8,
	coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" = 'Transaction/COMMIT'), 0)::int8
	FROM pg_get_wal_stats('0/0'::pg_lsn + %d::int8, '0/0'::pg_lsn + %d::int8, true)`

// wrote counts what was written since a position. It reads the WAL, because the server's own
// counters come late and count reading transactions, too. The server must have kept the WAL
// (wal_keep_size), and have the extension pg_walinspect (PostgreSQL 15 or later, with its contrib
// modules).
func (b *bench) wrote(ctx context.Context, from int64) (w written, err error) {
	to, err := b.position(ctx)
	if err == nil {
		err = sql(ctx, b.dsn, "CREATE EXTENSION IF NOT EXISTS pg_walinspect")
	}
	if err == nil {
		err = sql(ctx, b.dsn, fmt.Sprintf(countWritten, from, to), &w.rows, &w.commits)
	}
	w.wal = to - from
	return w, err
}

// memory reads a line of the status of a process, in MiB: VmRSS now, VmHWM at most.
func memory(pid, line string) float64 {
	raw, _ := os.ReadFile("/proc/" + pid + "/status")
	for l := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

// resetPeak makes VmHWM begin anew.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) }
