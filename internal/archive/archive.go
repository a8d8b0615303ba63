package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
)

// To writes the jobs of a partition to a file in dir, complete and on disk, before the partition
// is dropped. Without a dir nothing is kept.
func To(dir string) store.Archive {
	if dir == "" {
		return nil
	}
	return func(ctx context.Context, name string, each func(store.Visit) error) error {
		path := filepath.Join(dir, name+".jsonl")
		if err := sweep(path); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return WriteFile(path, func(w io.Writer) error {
			out := export.NewWriter(w)
			err := each(func(job *collation.Job, flow journal.Digest, attachments iter.Seq2[journal.Attachment, error],
				entries iter.Seq2[journal.Record, error],
			) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return out.Job(export.Header{
					Space: job.Space, Job: job.ID, Generation: job.Generation, Key: job.Key, Head: job.Head, Flow: flow,
				}, attachments, entries)
			})
			return cmp.Or(err, out.Flush())
		})
	}
}

// sweep removes the temporary files, named path plus a number, of processes that died while they
// wrote. No other process is writing now: archiving a partition needs a lock.
func sweep(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, f := range files {
		number, left := strings.CutPrefix(f.Name(), filepath.Base(path)+".")
		if _, err := strconv.ParseUint(number, 10, 64); err != nil || !left || !f.Type().IsRegular() {
			continue // not a temporary file; for example, somebody's compressed copy
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error unless dir is a directory or empty.
func Check(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	}
	return nil
}

// WriteFile writes a temporary file and renames it to path when it is complete and on disk. After
// an error of write path is as it was before.
func WriteFile(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := write(temp); err != nil {
		return errors.Join(err, temp.Close(), os.Remove(temp.Name()))
	}
	if err = errors.Join(temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("export: %w", err), os.Remove(temp.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
