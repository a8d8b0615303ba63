package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes that mean the same in every command. Each command documents its own, from 3 on.
const (
	CodeOK          = 0
	CodeFailed      = 1 // for example, a server is away or a file cannot be read
	CodeUsage       = 2 // wrong arguments, flags or configuration
	CodeInterrupted = 130
)

// Streams are the input, the outputs and the environment of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(name string) string
}

// exitError is an error with its exit code.
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

// ErrReported ends a command that has printed its errors already; only the exit code counts.
var ErrReported = errors.New("reported")

// Code returns the exit code of err, CodeFailed if it has none.
func Code(err error) int {
	if err == nil {
		return CodeOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return CodeFailed
}

// Run makes a cobra RunE. An error of f without a code becomes CodeFailed, so that Execute can
// tell it from errors of cobra before f was called.
func Run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		if err == nil {
			return nil
		}
		return Exit(Code(err), err)
	}
}

// Execute runs the command and returns the exit code. It prints errors to s.Err, after the
// command's name.
func Execute(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = cmp.Or(Build(), "unknown") // --version
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), inherited, elsewhere, 1))
	unknown := knowsCommands(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = *unknown
	}
	if err == nil {
		return CodeOK
	}
	_, coded := errors.AsType[*exitError](err)
	code := Code(err)
	if !coded {
		code = CodeUsage
	}
	stopped := ctx.Err() != nil && code == CodeFailed
	// a person who presses Ctrl-C knows
	if !errors.Is(err, ErrReported) && !(stopped && errors.Is(err, context.Canceled)) {
		fmt.Fprintf(s.Err, "%s: %s\n", cmd.CommandPath(), Harmless(badValue(err)))
	}
	if code == CodeUsage {
		fmt.Fprintf(s.Err, "'%s --help' says how it is used.\n", cmd.CommandPath())
	}
	if stopped {
		return CodeInterrupted
	}
	return code
}

// The help of a command is about that command: in the place of the flags that all commands have, it
// says where they are.
const (
	inherited = `

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}`
	elsewhere = `

Flags of every command: {{.Root.Name}} --help`
)

// Harmless is the text of an error for a terminal: users' data in it can neither move the cursor nor
// turn around what stands beside it. Its lines stay.
func Harmless(err error) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, err.Error())
}

// knowsCommands lets a command that only has others below it refuse a name that is none of them.
// Cobra would print its help, and end well: a script would not notice. The error is there when the
// command has been executed; nil: there is none.
func knowsCommands(root *cobra.Command) *error {
	unknown, help := new(error), root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); !cmd.Runnable() && len(rest) > 0 {
			*unknown = Exitf(CodeUsage, "unknown command %.40q for %q", rest[0], cmd.CommandPath())
			return
		}
		help(cmd, args)
	})
	return unknown
}

// Getenv is os.Getenv of the process. Where USER is not set, as in containers and services, it is
// the name that the system has of the user: the journal names who did what.
func Getenv(name string) string {
	value := os.Getenv(name)
	if name != "USER" || value != "" || os.Getenv("LOGNAME") != "" {
		return value
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// Main runs a command with the process's streams and exits with its code. The first SIGINT or
// SIGTERM ends ctx, the second one ends the process.
func Main(run func(ctx context.Context, args []string, s Streams) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: Getenv})
	stop()
	os.Exit(code)
}

// Terminal says whether w is a terminal, on which a progress display is useful.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size returns the width and the height of a terminal, in characters; 80 and 24 if it does not say.
func Size(w io.Writer) (width, height int) {
	if f, ok := w.(*os.File); ok {
		width, height, _ = term.GetSize(int(f.Fd()))
	}
	if width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// PathError returns an error about a file without the name of the system call.
func PathError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}
