package main

import (
	"context"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func main() {
	cli.Main(func(ctx context.Context, args []string, s cli.Streams) int { return run(ctx, args, s, openPostgres) })
}
