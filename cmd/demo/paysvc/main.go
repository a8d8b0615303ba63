package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/examples/orders/shop"
)

const readWait = 10 * time.Second // for a request

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(), args, s)
}

func newCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "paysvc",
		Short: "The demo's payment service, warehouse and carrier",
		Long: `The outside world of the demo, in memory: /charges, /reservations, /shipments,
/refunds and /invoices take a POST with an Idempotency-Key and apply it once;
GET /stats and GET /charges say what was applied. It prints its URL when it
listens, and runs until SIGTERM or SIGINT.

Exit codes: 0 stopped by a signal · 1 the address cannot be used · 2 usage.`,
		Args: cli.Args(0, 0),
	}
	cmd.Flags().StringVar(&addr, "addr", orders.Address, "`ADDRESS` to listen on; port 0 is any free one")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		server := &http.Server{Handler: shop.New(), ReadHeaderTimeout: readWait, ReadTimeout: readWait}
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", listener.Addr())
		if err := server.Serve(listener); ctx.Err() == nil {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	return cmd
}
