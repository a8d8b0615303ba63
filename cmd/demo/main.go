package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/examples/orders"
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(), args, s)
}

// options are the flags.
type options struct {
	bin     string
	orders  int
	keep    bool
	timeout time.Duration
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run 2 000 orders through a killed worker, and check them all",
		Long: `Run orders through charge → reserve → ship with two worker processes, kill one of
them with SIGKILL in mid-flow and start it again, wait for the end, verify the
journal, and check every order and every charge against the rules that the orders
were made by. It needs the built binaries worker and journal-verify.

Exit codes:

- 0: every number fits
- 1: a number does not fit, or something could not be run; the data and the logs are kept
- 2: flags`,
		Args: cli.Args(0, 0),
	}
	f := cmd.Flags()
	f.StringVar(&o.bin, "bin", "bin", "`DIR` with the binaries")
	f.IntVar(&o.orders, "orders", orders.Count, "run `N` orders")
	f.BoolVar(&o.keep, "keep", false, "keep the data and the logs")
	f.DurationVar(&o.timeout, "timeout", 4*time.Minute, "give up after this `TIME`")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if o.orders < 1 {
			return cli.Exitf(cli.CodeUsage, "--orders %d: use 1 or more", o.orders)
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
		defer cancel()
		return perform(ctx, o, cmd.OutOrStdout())
	})
	return cmd
}

// perform is the whole demo, in a directory that is removed if everything fits.
func perform(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "quipu-demo-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // as root, Postgres is another user and passes it
		return err
	}
	d := &demo{options: o, dir: dir, say: tell(out)}
	err = d.run(ctx)
	d.say.end()
	if err == nil {
		err = d.print(out)
	}
	if err == nil && !o.keep {
		return os.RemoveAll(dir)
	}
	fmt.Fprintf(out, "\nLogs and data are in %s. To look at the journal, start its servers and ask quipu:\n", dir)
	fmt.Fprintf(out, "  %s dev --servers-only --data %s\n", filepath.Join(o.bin, "worker"), dir)
	fmt.Fprintf(out, "  %s --dev %s show order-00001\n", filepath.Join(o.bin, "quipu"), dir)
	return err
}
