package quipu

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/journal/store"
)

// archiveTo writes the jobs of a partition to a file of a directory, which is there,
// whole and on disk, before the partition goes. Without a directory nothing is kept.
func archiveTo(dir string) store.Archive {
	if dir == "" {
		return nil
	}
	return func(ctx context.Context, name string, each func(store.Visit) error) error {
		return export.WriteFile(filepath.Join(dir, name+".jsonl"), func(out *export.Writer) error {
			return each(func(job *collation.Job, flow journal.Digest, entries iter.Seq2[journal.Record, error]) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return out.Job(export.Header{
					Space: job.Space, Job: job.ID, Generation: job.Generation, Key: job.Key, Head: job.Head, Flow: flow,
				}, entries)
			})
		})
	}
}

// checkArchive says whether there is such a directory.
func checkArchive(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%w: Archive: %w", ErrConfig, err)
	case !info.IsDir():
		return fmt.Errorf("%w: Archive: %s is no directory", ErrConfig, dir)
	}
	return nil
}
