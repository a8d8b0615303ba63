package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/journal/store"
)

func (a *app) exportCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "export KEY... | export -",
		Short: "Write the journal of jobs to a file",
		Long: `Write the journal of jobs as JSON Lines, to standard output or a file, for
journal-verify FILE: a header for each job, then its entries with the stored bytes.
Here -o names the file. A file appears when it is complete, not before.`,
		Example: "  quipu export order-42 -o order-42.jsonl && journal-verify order-42.jsonl\n  quipu ls --keys --limit 0 | quipu export - -o all.jsonl",
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVarP(&path, "output", "o", "-", "`FILE` to write; - is standard output")
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
			if path == "-" {
				return exportJobs(ctx, rt, keys, a.streams.Out)
			}
			return exportFile(ctx, rt, keys, path)
		})
	})
	return cmd
}

// exportFile writes beside the file and puts it in place at the end.
func exportFile(ctx context.Context, rt *quipu.Runtime, keys []string, path string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	buffered := bufio.NewWriter(temp)
	err = exportJobs(ctx, rt, keys, buffered)
	if err == nil {
		err = errors.Join(buffered.Flush(), temp.Sync())
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

func exportJobs(ctx context.Context, rt *quipu.Runtime, keys []string, w io.Writer) error {
	out := export.NewWriter(w)
	for _, key := range keys {
		job, err := rt.Find(ctx, key)
		if err != nil {
			return err
		}
		if err := rt.Store().Audit(ctx, job.ID, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
			return exportJob(out, s, records)
		}); err != nil {
			return fmt.Errorf("export job %q: %w", key, err)
		}
	}
	return out.Flush()
}

func exportJob(out *export.Writer, s *store.Stored, records iter.Seq2[journal.Record, error]) error {
	j := s.Job
	err := out.Begin(export.Header{Space: j.Space, Job: j.ID, Generation: j.Generation, Key: j.Key, Head: j.Head, Flow: s.FlowDigest})
	if err != nil {
		return err
	}
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := out.Write(r); err != nil {
			return err
		}
	}
	return nil
}
