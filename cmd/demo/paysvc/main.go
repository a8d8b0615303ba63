package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// DefaultAddr is the address that examples/orders/order.yaml names.
const DefaultAddr = "127.0.0.1:7780"

const (
	readWait = 10 * time.Second
	stopWait = 5 * time.Second
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(), args, s)
}

func newCommand() *cobra.Command {
	var addr string
	var latency time.Duration
	cmd := &cobra.Command{
		Use:   "paysvc",
		Short: "The demo's payment service, warehouse and carrier",
		Long: `The outside world of the demo, in memory: /charges, /reservations, /shipments,
/refunds and /invoices take a POST with an Idempotency-Key and apply it once;
GET /stats and GET /charges say what was applied. It prints its URL when it
listens, and runs until SIGTERM or SIGINT.

Exit codes: 0 stopped by a signal · 1 the address cannot be used · 2 usage.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&addr, "addr", DefaultAddr, "`ADDRESS` to listen on; port 0 is any free one")
	cmd.Flags().DurationVar(&latency, "latency", 2*time.Millisecond, "`TIME` that every request takes")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		return serve(cmd, addr, newService(latency))
	})
	return cmd
}

func serve(cmd *cobra.Command, addr string, svc *service) error {
	ctx := cmd.Context()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: svc.handler(), ReadHeaderTimeout: readWait, ReadTimeout: readWait}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
		defer cancel()
		done <- server.Shutdown(ctx)
	}()
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-done
}
