package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/examples/orders"
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(s), args, s)
}

// options are the flags.
type options struct {
	bin, orders, flow, data string
	keep                    bool
	killAt                  int
	timeout                 time.Duration
}

func newCommand(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run 2 000 orders through a killed worker, and check them all",
		Long: `Run orders through charge → reserve → ship with two worker processes, kill one of
them with SIGKILL in mid-flow and start it again, wait for the end, verify the
journal, and check every order and every charge against the rules that the orders
were made by. It needs the built binaries worker, quipu, journal-verify and paysvc.

Exit codes:

- 0: every number fits
- 1: a number does not fit, or something could not be run; the data and the logs are kept
- 2: flags`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&o.bin, "bin", "bin", "`DIR` with the binaries")
	f.StringVar(&o.orders, "orders", "examples/orders/orders.jsonl", "`FILE` with the orders")
	f.StringVar(&o.flow, "flow", "examples/orders/order.yaml", "`FILE` with the flow")
	f.StringVar(&o.data, "data", "", "empty `DIR` for all data; default: a temporary one")
	f.BoolVar(&o.keep, "keep", false, "keep the data and the logs")
	f.IntVar(&o.killAt, "kill-at", 30, "kill a worker when this `PERCENTAGE` of the orders has ended")
	f.DurationVar(&o.timeout, "timeout", 4*time.Minute, "give up after this `TIME`")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if o.killAt < 1 || o.killAt > 99 {
			return cli.Exitf(cli.CodeUsage, "--kill-at %d: use 1 to 99", o.killAt)
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
		defer cancel()
		return perform(ctx, o, s)
	})
	cmd.AddCommand(newGenCommand(s))
	return cmd
}

func newGenCommand(s cli.Streams) *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Print the orders",
		Long:  `Print the orders as JSON Lines, the same for the same count: examples/orders/orders.jsonl.`,
		Args:  cobra.NoArgs,
		RunE: cli.Run(func(*cobra.Command, []string) error {
			if count < 1 {
				return cli.Exitf(cli.CodeUsage, "--count %d: use 1 or more", count)
			}
			return orders.Write(s.Out, count)
		}),
	}
	cmd.Flags().IntVar(&count, "count", orders.Count, "`N` orders")
	return cmd
}

// place is the directory of a run. It is removed when the run fits, unless it
// was given or is to be kept.
func place(o options) (dir string, remove bool, err error) {
	if o.data == "" {
		dir, err = os.MkdirTemp("", "quipu-demo-")
		if err == nil {
			err = os.Chmod(dir, 0o755) // as root, Postgres is another user and passes it
		}
		return dir, !o.keep, err
	}
	if err := os.MkdirAll(o.data, 0o755); err != nil {
		return "", false, err
	}
	found, err := os.ReadDir(o.data)
	if err == nil && len(found) > 0 {
		err = cli.Exitf(cli.CodeUsage, "--data %s: the directory is not empty", o.data)
	}
	return o.data, false, err
}
