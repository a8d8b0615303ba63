package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopWait bounds the orderly end of a process; then it is killed.
const stopWait = 45 * time.Second

// child is a process that the demo started. What it prints goes to its log and,
// line by line, to its watcher.
type child struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when reaped
	state  *os.ProcessState
	log    string
}

// startChild starts a binary in a process group of its own, so that Ctrl-C
// reaches the demo alone, which then stops it in order.
//
// The death signal (Linux) belongs to the thread that started the process, so
// one goroutine keeps its thread as long as the process lives.
func startChild(name, binary, logDir string, env []string, watch func(line string), args ...string) (*child, error) {
	c := &child{name: name, exited: make(chan struct{}), log: filepath.Join(logDir, name+".log")}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.cmd = exec.Command(binary, args...)
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = w, w
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c.cmd.SysProcAttr)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		_ = w.Close() // the child has its own
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // the state says how it ended
			c.state = c.cmd.ProcessState
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		_, _ = r.Close(), log.Close()
		return nil, fmt.Errorf("start %s: %w: are the binaries built?", name, err)
	}
	go follow(r, log, watch)
	return c, nil
}

// follow copies the output to the log until the process ends.
func follow(from io.ReadCloser, log io.WriteCloser, watch func(line string)) {
	defer func() { _, _ = from.Close(), log.Close() }()
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if _, e := io.WriteString(log, line); e != nil {
			_, _ = io.Copy(io.Discard, r) // a full disk must not block the process
			return
		}
		if watch != nil && line != "" {
			watch(line)
		}
		if err != nil {
			return
		}
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// running reports whether the process has not been reaped: only then is its pid
// its own.
func (c *child) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// kill is SIGKILL: no deferred call, no flush.
func (c *child) kill() error {
	if c.running() {
		if err := syscall.Kill(c.pid(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s (pid %d): %w", c.name, c.pid(), err)
		}
	}
	<-c.exited
	return nil
}

// stop is SIGTERM, and SIGKILL if that takes too long. A process that ends in
// another way than with 0 is an error.
func (c *child) stop() error {
	if c.running() {
		if err := syscall.Kill(c.pid(), syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop %s (pid %d): %w", c.name, c.pid(), err)
		}
	}
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
		if err := c.kill(); err != nil {
			return err
		}
		return fmt.Errorf("%s did not end within %s of SIGTERM and was killed, see %s", c.name, stopWait, c.log)
	}
	if !c.state.Success() {
		return fmt.Errorf("%s ended: %s, see %s", c.name, c.state, c.log)
	}
	return nil
}
