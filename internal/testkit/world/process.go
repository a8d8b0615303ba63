package world

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// Process is one that a test started, which ends it by its pid.
type Process struct {
	PID  int
	Log  *devtest.Log
	Open chan struct{} // closed when it has printed the line open, as its first
	Gone chan struct{} // closed when it has ended
	Err  error         // how, then

	t   testing.TB
	cmd *exec.Cmd
}

// Variable is a variable that holds a configuration as JSON.
func Variable(variable string, config any) string {
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return variable + "=" + string(raw)
}

// Child is the whole of a process that a test started with a Variable: it works until SIGTERM, and ends
// with what work says. In other processes it does nothing.
func Child[C any](variable string, work func(ctx context.Context, config C) error) {
	raw := os.Getenv(variable)
	if raw == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var c C
	err := json.Unmarshal([]byte(raw), &c)
	if err == nil {
		err = work(ctx, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process is over
	}
	os.Exit(0)
}

// lastWords is how long what a process said may take to arrive after its end.
const lastWords = 10 * time.Second

// StartProcess starts a program. What it says goes into log; it is killed when the test ends.
func StartProcess(t testing.TB, log *devtest.Log, program string, env ...string) *Process {
	t.Helper()
	p := &Process{Log: log, Open: make(chan struct{}), Gone: make(chan struct{}), t: t, cmd: exec.Command(program)}
	p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = append(os.Environ(), env...), log, lastWords
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.PID = p.cmd.Process.Pid
	go func() {
		if line, _ := bufio.NewReader(out).ReadString('\n'); line == "open\n" {
			close(p.Open)
		}
		p.Err = p.cmd.Wait()
		close(p.Gone)
	}()
	t.Cleanup(p.Kill)
	return p
}

// While is a context that ends with the process, too, whose log is then the cause.
func (p *Process) While(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	p.t.Cleanup(func() { cancel(nil) })
	go func() {
		select {
		case <-p.Gone:
			cancel(fmt.Errorf("a process ended (%v):\n%s", p.Err, p.Log))
		case <-ctx.Done():
		}
	}()
	return ctx
}

// Kill is SIGKILL: no deferred call, no flush (F1).
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	devtest.Await(p.t, "the end of a killed process", p.Gone)
}

// AwaitFrom returns what a channel brings while the process works for it. It fails the test at once,
// with the process's log, if that ends first, and if what was waited for does not come in time.
func AwaitFrom[T any](p *Process, what string, events <-chan T) (event T) {
	p.t.Helper()
	select {
	case event = <-events:
	case <-p.Gone:
		select {
		case event = <-events: // its last deed
		default:
			p.t.Fatalf("a process ended (%v) before %s:\n%s", p.Err, what, p.Log)
		}
	case <-time.After(devtest.Patience):
		p.t.Fatalf("%s did not come within %v from a process that said:\n%s", what, devtest.Patience, p.Log)
	}
	return event
}

// Signal sends a signal to the process. One that is stopped stands when it returns: the
// kernel takes its time, in which the process could go on.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	if s == syscall.SIGSTOP {
		require.Eventually(p.t, p.stands, time.Minute, time.Millisecond)
	}
}

// stands says that the process is stopped; where nobody can tell, that it may be.
func (p *Process) stands() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	return err != nil || strings.Contains(string(stat), ") T ")
}

// Stand has the process stand still while it lives, until go on.
func (p *Process) Stand() (goOn func()) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP) // gone already is as good
	return func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }
}

// ErrHangs says of a process that it does not come to its end.
var ErrHangs = errors.New("it hangs")

// Drain ends a process that lives: it must end well (T10), each step within patience. One
// that was started a moment ago is asked when it is open: before, a signal just ends it.
func (p *Process) Drain(patience time.Duration) error {
	select {
	case <-p.Gone:
		return nil
	default:
	}
	select {
	case <-p.Gone:
		return fmt.Errorf("it ended before it was open: %w", p.Err)
	case <-time.After(patience):
		return fmt.Errorf("it does not open: %w", ErrHangs)
	case <-p.Open:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already is as good
	select {
	case <-p.Gone:
		return p.Err
	case <-time.After(patience):
		return fmt.Errorf("it does not drain: %w", ErrHangs)
	}
}
