package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// Exit codes.
const (
	exitProved     = 0
	exitViolated   = 1
	exitUnreadable = 2
)

// defaultSpace is the default of the other commands, too.
const defaultSpace = "default"

// opener opens a space of a database.
type opener func(ctx context.Context, dsn, space string) (reader, error)

// flags are the command line.
type flags struct {
	dsn, space string
	dev        string
	jobs       []string
	files      []string
	json       bool
	quiet      bool // print only what is not proved, and the sum
	noBar      bool
	chain      reader // the chain of the space itself, if it is verified, too
	both       bool   // files, and also flags that name a database
}

// errInput is wrapped by errors of the command line.
var errInput = errors.New("what to verify?")

// run runs the command and returns the exit code.
func run(ctx context.Context, args []string, s cli.Streams, open opener) int {
	code := exitUnreadable
	var f flags
	cmd := &cobra.Command{
		Use:   "journal-verify [--postgres DSN | --dev DIR] [--space S] [--job KEY-or-ID]... | FILE...",
		Short: "Prove or refute that journals keep their laws",
		Long: "Replays the entries of every job and checks them, and what is stored beside them, against the laws V1 to V19.\n" +
			"Reads a database (read-only rights are enough), or exported files; - is standard input.\n" +
			"Exit codes: 0 all proved, 1 violated, 2 could not be read or checked.",
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, files []string) error {
			f.files = files
			f.both = len(files) > 0 && (cmd.Flags().Changed("postgres") || cmd.Flags().Changed("space") || cmd.Flags().Changed("dev"))
			if len(files) == 0 {
				if err := f.find(cmd, s); err != nil {
					return err
				}
			}
			units, total, done, err := f.units(cmd.Context(), open, s.In)
			if err != nil {
				return err
			}
			defer done()
			code, err = verify(cmd.Context(), &f, units, total, s)
			return err
		},
	}
	cmd.Flags().StringVar(&f.dsn, "postgres", "", "connection string of the database (QUIPU_POSTGRES)")
	cmd.Flags().StringVar(&f.dev, "dev", "", "data directory of a running worker dev (QUIPU_DEV); default: .quipu, if one runs there")
	cmd.Flags().StringVar(&f.space, "space", "", "the space to verify (QUIPU_SPACE); default: default")
	cmd.Flags().StringArrayVar(&f.jobs, "job", nil, "verify only this job, by key or id; may be repeated")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON object for each job")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "only the jobs that are not proved, and the last line")
	cmd.Flags().BoolVar(&f.noBar, "no-progress", false, "no progress bar, even on a terminal")
	cli.FromEnv(cmd.Flags(), "postgres", "dev", "space")
	cmd.SetArgs(args)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(s.Err, "journal-verify:", err)
		return max(code, exitUnreadable)
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return exitProved
	}
	return code
}

// find chooses the database and its space, as the other commands do.
func (f *flags) find(cmd *cobra.Command, s cli.Streams) error {
	env, err := cli.ReadEnv(cmd, s.Getenv)
	if err != nil {
		return err
	}
	_, err = cli.UseDev(cmd, env)
	if errors.Is(err, cli.ErrNoDatabase) {
		return fmt.Errorf("%w, or files: `journal-verify --help`", err)
	}
	return err
}

// units returns what to verify, how much that is, and what to close afterwards.
func (f *flags) units(
	ctx context.Context, open opener, stdin io.Reader,
) (iter.Seq2[unit, error], total, func(), error) {
	if f.both {
		return nil, total{}, nil, fmt.Errorf("%w: --postgres and --space name a database, the arguments files: give one of them", errInput)
	}
	if len(f.files) > 0 {
		if len(f.jobs) > 0 {
			return nil, total{}, nil, fmt.Errorf("%w: --job selects jobs of a database, not of files", errInput)
		}
		units, size := fileUnits(f.files, stdin)
		return units, size, func() {}, nil
	}
	if f.space == "" {
		f.space = defaultSpace
	}
	r, err := open(ctx, f.dsn, f.space)
	if _, unreadable := errors.AsType[*postgres.DSNError](err); unreadable {
		return nil, total{}, nil, cli.Configuration(err)
	}
	if err != nil {
		return nil, total{}, nil, fmt.Errorf("open space %s: %w", f.space, err)
	}
	ids, err := findJobs(ctx, r, f.jobs)
	if err != nil {
		r.Close()
		return nil, total{}, nil, err
	}
	if len(f.jobs) == 0 {
		f.chain = r
	}
	return storeUnits(ctx, r, ids), countJobs(ctx, r, ids), r.Close, nil
}

// verify runs the units on all cores and prints the outcomes.
func verify(ctx context.Context, f *flags, units iter.Seq2[unit, error], of total, s cli.Streams) (int, error) {
	bar := newProgress(s.Err, of, f.noBar)
	var p printer = newTable(s.Out, f.quiet)
	if f.json {
		p = newLines(s.Out)
	}
	code, jobs := exitProved, 0
	err := pipeline(withProgress(ctx, bar), units, runtime.GOMAXPROCS(0), func(o outcome) error {
		jobs++
		switch {
		case o.err == nil && o.report.Violated():
			code = exitViolated
		case o.err != nil && code != exitViolated:
			code = exitUnreadable
		}
		bar.pause()
		if f.quiet && f.json && o.proved() {
			return nil
		}
		return p.print(o)
	})
	bar.stop()
	if err != nil {
		return exitUnreadable, err
	}
	if jobs == 0 && len(f.files) > 0 {
		return exitUnreadable, errors.New("no job in this input")
	}
	if err := p.finish(); err != nil || f.chain == nil {
		return code, err
	}
	spaces, err := verifySpace(ctx, f.chain, p)
	if spaces == exitViolated || code == exitProved {
		code = spaces
	}
	return code, err
}
