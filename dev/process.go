package dev

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a child that dies with this process (on Linux).
type process struct {
	pid    int
	exited chan struct{} // closed when reaped
	state  *os.ProcessState
}

// startProcess starts a child in its own process group, so that Ctrl-C at the terminal reaches
// only the parent, which then stops the child in order.
//
// The death signal belongs to the thread that forked (prctl(2)), not to the process. So one
// goroutine keeps its thread as long as the child lives; otherwise the runtime might end the
// thread, and the kernel then the child.
func startProcess(name string, args []string, out io.Writer, env []string, as *owner) (*process, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
	dieWithParent(cmd.SysProcAttr)
	p := &process{exited: make(chan struct{})}
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
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// signal signals the child unless it was reaped: then another process may have its pid.
func (p *process) signal(sig syscall.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
		return syscall.Kill(p.pid, sig)
	}
}
