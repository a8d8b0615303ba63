//go:build chaos

package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quipu-journal/quipu/dev/devtest"
)

// What a worker process may take. The drains given to them are at most two
// seconds; what is beyond hangs (T10).
const (
	drainPatience = 25 * time.Second
	dumpPatience  = 3 * time.Second // for writing its goroutines
	rebirth       = 100 * time.Millisecond
	kidTail       = 256 << 10 // bytes: all goroutines of one that hangs
)

// mixed is a round whose processes have modes of their own (C11).
const mixed = "mixed"

// kid is a worker process that lives in one of the slots.
type kid struct {
	cmd    *exec.Cmd
	log    *devtest.Log
	config string
	done   chan struct{} // closed when the process has ended and was waited for
	ours   atomic.Bool   // a fault asked for its end
}

// spawn starts a worker process whose limits the dice choose: processes of one
// space need not be alike, and the smallest limits find the most (F16).
func (c *chaos) spawn(dice *rand.Rand) (*kid, error) {
	raw, err := json.Marshal(childConfig{
		Postgres: c.e.dsn, NATS: c.url, Space: c.e.space, Receiver: c.r.URL,
		Resend: quickResend, Lease: c.lease, Drain: between(dice, 500*time.Millisecond, 2*time.Second),
		Stepwise: c.mode == "stepwise" || c.mode == mixed && dice.IntN(3) == 0,
		NoFold:   c.mode == "nofold" || c.mode == mixed && dice.IntN(3) == 0, MaxBatch: pick(dice, 1, 1, 2, 7, 500),
		Committers: 1 + dice.IntN(3), Concurrency: 2 + dice.IntN(8),
	})
	if err != nil {
		return nil, err
	}
	k := &kid{cmd: exec.Command(os.Args[0]), log: &devtest.Log{Keep: kidTail}, config: string(raw), done: make(chan struct{})}
	k.cmd.Env = append(os.Environ(), childEnv+"="+k.config)
	k.cmd.Stdout, k.cmd.Stderr = k.log, k.log
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = k.cmd.Wait() // ProcessState says how it ended
		close(k.done)
	}()
	return k, nil
}

// keep holds a slot until ctx ends: whenever its process has gone, by a fault or
// because it could not open its connections during one, another takes its place.
// The last one is drained.
func (c *chaos) keep(ctx context.Context, slot int, dice *rand.Rand) {
	for {
		k, err := c.spawn(dice)
		if !assert.NoError(c.e.t, err, "start a worker process") {
			return
		}
		c.mu.Lock()
		c.kids[slot] = k
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			c.drain(k)
			return
		case <-k.done:
		}
		if !k.ours.Load() {
			c.count("exit by itself")
			c.note("worker %d ended by itself: %s", k.cmd.Process.Pid, k.lastLine())
			if !pause(ctx, rebirth) {
				return
			}
		}
	}
}

// drain asks a process to end and holds it to it (T10). One that hangs says
// where, and is killed.
func (c *chaos) drain(k *kid) {
	k.ours.Store(true)
	_ = k.cmd.Process.Signal(syscall.SIGTERM) // gone already is as good
	select {
	case <-k.done:
		if code := k.cmd.ProcessState.ExitCode(); code > 0 {
			c.count("drain with an error")
			c.note("worker %d ended with %d: %s", k.cmd.Process.Pid, code, k.lastLine())
		}
		return
	case <-time.After(drainPatience):
	}
	_ = k.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-k.done:
	case <-time.After(dumpPatience):
		_ = k.cmd.Process.Kill()
		<-k.done
	}
	c.e.t.Errorf("T10: worker %d (%s) had not drained after %s and said:\n%s", k.cmd.Process.Pid, k.config, drainPatience, k.log)
}

// dump makes the workers say what each of their goroutines does. That ends them;
// others take their places.
func (c *chaos) dump() {
	c.mu.Lock()
	kids := slices.Clone(c.kids)
	c.mu.Unlock()
	for _, k := range kids {
		if k == nil {
			continue
		}
		c.e.t.Logf("worker %d, %s, said:\n%s", k.cmd.Process.Pid, k.config, k.log) // what it does pushes it out
		k.ours.Store(true)
		_ = k.cmd.Process.Signal(syscall.SIGQUIT) // gone already is as good
		select {
		case <-k.done:
		case <-time.After(dumpPatience):
		}
		c.e.t.Logf("worker %d does:\n%s", k.cmd.Process.Pid, k.log)
	}
}

// lastLine is why a process ended, as it says itself.
func (k *kid) lastLine() string {
	said := strings.TrimSpace(k.log.String())
	return said[strings.LastIndexByte(said, '\n')+1:]
}
