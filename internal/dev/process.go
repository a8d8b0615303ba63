package dev

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a child of this process. On Linux it dies with this process.
type Process struct {
	pid    int
	exited chan struct{} // closed when reaped
	state  *os.ProcessState
}

// StartProcess starts a command in its own process group, so that Ctrl-C at the terminal reaches
// only this process; the caller must Stop the child in order. On Linux the child gets a SIGINT
// when this process ends.
//
// The death signal belongs to the thread that forked (prctl(2)), not to the process. So one
// goroutine keeps its thread as long as the child lives; otherwise the runtime might end the
// thread, and the kernel then the child.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	p := &Process{exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // ProcessState says how it ended
		p.state = cmd.ProcessState
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID returns the process's pid.
func (p *Process) PID() int { return p.pid }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State returns how the process ended; nil until it is Exited.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.exited:
		return p.state
	default:
		return nil
	}
}

// Stop sends the signal first, waits for the end, and after the time wait sends last and waits
// on. A process that has ended gets no signal.
func (p *Process) Stop(first syscall.Signal, wait time.Duration, last syscall.Signal) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if err := p.signal(first); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
	}
	if err := p.signal(last); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signal signals the child unless it was reaped: then another process may have its pid.
func (p *Process) signal(sig syscall.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := syscall.Kill(p.pid, sig); err != nil {
		return fmt.Errorf("send %s to pid %d: %w", sig, p.pid, err)
	}
	return nil
}
