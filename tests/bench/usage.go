package main

import (
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
	total := stat(pid, true)
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		if id, err := strconv.Atoi(filepath.Base(p)); err == nil && parent(id) == pid {
			total += stat(id, true)
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

func fields(pid int) []string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may hold spaces
	return strings.Fields(rest)
}

func parent(pid int) int {
	f := fields(pid)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

func stat(pid int, waited bool) time.Duration {
	f := fields(pid)
	if len(f) < 15 {
		return 0
	}
	last := 13 // utime and stime
	if waited {
		last = 15 // and those of the children waited for
	}
	ticks := 0
	for _, s := range f[11:last] {
		n, _ := strconv.Atoi(s)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
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
