package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes that mean the same in every command. Each command documents its
// own from 3 on.
const (
	CodeOK          = 0
	CodeFailed      = 1 // it could not be done: a server is away, a file cannot be read
	CodeUsage       = 2 // arguments, flags or configuration
	CodeInterrupted = 130
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(name string) (value string, set bool)
}

// exitError is an error with the exit code that it asks for.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Exit gives err an exit code. A nil err stays nil.
func Exit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// Exitf is Exit with a message.
func Exitf(code int, format string, a ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, a...)}
}

// ErrReported ends a command whose errors were printed already; only its code
// counts.
var ErrReported = errors.New("reported")

// Code is the exit code that err asks for, CodeFailed if it asks for none.
func Code(err error) int {
	if err == nil {
		return CodeOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return CodeFailed
}

// Run makes a cobra RunE: what f returns without a code is CodeFailed, so that
// Execute can tell it from what cobra refused before f was called.
func Run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		if err == nil {
			return nil
		}
		return Exit(Code(err), err)
	}
}

// Execute runs the command and returns the exit code. Errors go to s.Err with
// the command's name in front.
func Execute(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return CodeOK
	}
	_, coded := errors.AsType[*exitError](err)
	code := Code(err)
	if !coded {
		code = CodeUsage
	}
	stopped := ctx.Err() != nil && code == CodeFailed
	if !errors.Is(err, ErrReported) && !(stopped && errors.Is(err, context.Canceled)) { // who presses Ctrl-C knows
		fmt.Fprintf(s.Err, "%s: %v\n", cmd.CommandPath(), err)
	}
	if code == CodeUsage {
		fmt.Fprintf(s.Err, "'%s --help' says how it is used.\n", cmd.CommandPath())
	}
	if stopped {
		return CodeInterrupted
	}
	return code
}

// Main runs a command with the process's streams until it ends, and exits with
// its code. The first SIGINT or SIGTERM ends ctx, the second the process.
func Main(run func(ctx context.Context, args []string, s Streams) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv})
	stop()
	os.Exit(code)
}

// Terminal reports whether w is a terminal: then a progress display is welcome.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// PathError is an error about a file without the name of the call that met it.
func PathError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}
