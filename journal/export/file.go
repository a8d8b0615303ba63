package export

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/quipu-journal/quipu/journal"
)

// Job writes a job: its header, then its entries.
func (w *Writer) Job(h Header, entries iter.Seq2[journal.Record, error]) error {
	if err := w.Begin(h); err != nil {
		return err
	}
	for r, err := range entries {
		if err != nil {
			return err
		}
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes beside the file and puts it in place when it is complete and on disk;
// after an error of write there is none, or that which was there before.
func WriteFile(path string, write func(*Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	out := NewWriter(temp)
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
