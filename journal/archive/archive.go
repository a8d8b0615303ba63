package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/journal/store"
)

// To writes the jobs of a partition to a file of a directory, which is there,
// whole and on disk, before the partition goes. Without a directory nothing is kept.
func To(dir string) store.Archive {
	if dir == "" {
		return nil
	}
	return func(ctx context.Context, name string, each func(store.Visit) error) error {
		path := filepath.Join(dir, name+".jsonl")
		if err := sweep(path); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return WriteFile(path, func(out *export.Writer) error {
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

// sweep removes what processes have left that died while they wrote the file: its name
// with a number. Nobody else writes it now: who archives a partition has the lock for
// that.
func sweep(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, f := range files {
		number, left := strings.CutPrefix(f.Name(), filepath.Base(path)+".")
		if _, err := strconv.ParseUint(number, 10, 64); err != nil || !left || !f.Type().IsRegular() {
			continue // somebody's own, such as a copy that was compressed
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Check says whether there is such a directory.
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

// WriteFile writes beside the file and puts it in place when it is complete and on disk;
// after an error of write there is none, or that which was there before.
func WriteFile(path string, write func(*export.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	out := export.NewWriter(temp)
	if err := write(out); err != nil {
		return errors.Join(err, temp.Close(), os.Remove(temp.Name()))
	}
	if err = errors.Join(out.Flush(), temp.Sync(), temp.Close()); err == nil {
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
