package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/archive"
)

func (a *app) exportCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "export KEY... | export -",
		Short: "Write the journal of jobs to a file",
		Long: `Write the journals of jobs as JSON Lines, to standard output or a file, for
journal-verify FILE: a header for each job, the definition of its flow, its outputs that
are stored beside the journal, then its entries with the stored bytes.
Here -o names the file. The file appears only when it is complete. A job that is not
there, or has expired, is reported, and the other jobs are exported.`,
		Example: "  quipu export order-42 -o order-42.jsonl && journal-verify order-42.jsonl\n  quipu ls --keys --limit 0 | quipu export - -o all.jsonl",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().StringVarP(&path, "output", "o", "-", "`FILE` to write; - is standard output")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			if path == "-" {
				_, err := a.exportJobs(ctx, cmd, from, keys, a.streams.Out)
				return err
			}
			return a.exportFile(ctx, cmd, from, keys, path)
		})
	})
}

// exportFile writes the file; without any job it writes none.
func (a *app) exportFile(ctx context.Context, cmd *cobra.Command, from source, keys []string, path string) error {
	var missing error
	err := archive.WriteFile(path, func(out io.Writer) error {
		n, err := a.exportJobs(ctx, cmd, from, keys, out)
		if n > 0 && errors.Is(err, cli.ErrReported) {
			missing, err = err, nil
		}
		return err
	})
	if err == nil {
		err = missing
	}
	return err
}

// exportJobs writes the jobs and counts them. A job that does not exist, or expires meanwhile, is
// reported and does not stop the others (cli.ErrReported).
func (a *app) exportJobs(
	ctx context.Context, cmd *cobra.Command, from source, keys []string, out io.Writer,
) (n int, err error) {
	err = a.each(cmd, keys, func(key string) error {
		err := from.Export(ctx, key, out)
		if err == nil {
			n++
		}
		return err
	})
	return n, err
}
