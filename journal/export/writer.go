package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quipu-journal/quipu/journal"
)

// ErrOrder says that an entry was written before any header, or belongs to another job than the
// header's.
var ErrOrder = errors.New("entry outside its job")

// Writer writes a file: for each job Begin, Attachment for what stands beside its entries, and Write
// for each entry; and Flush at the end.
// After an error the file is incomplete. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer
	job     journal.JobID
	entries bool // of the job, are being written
	buf     []byte
}

// NewWriter writes to w, buffered.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, bufferSize)} }

// Begin writes the header of the next job. A key over MaxKey bytes, or no UTF-8, is ErrTooLong.
func (w *Writer) Begin(h Header) error {
	line, err := appendHeader(w.buf[:0], &h)
	if err != nil {
		return err
	}
	if len(line)-1 > MaxHeader {
		return fmt.Errorf("%w: the header of job %s has %d bytes, the limit is %d", ErrTooLong, h.Job, len(line), MaxHeader)
	}
	w.job, w.buf, w.entries = h.Job, line, false
	return w.write(line)
}

// Write writes one entry of the job of Begin. An entry of another job is ErrOrder; a body over
// journal.MaxEntryBytes is ErrTooLong.
func (w *Writer) Write(rec journal.Record) error {
	switch {
	case w.job.IsZero() || !rec.Job.IsZero() && rec.Job != w.job:
		return fmt.Errorf("%w: entry %d of job %s under the header of job %s", ErrOrder, rec.Seq, rec.Job, w.job)
	case len(rec.Body) > journal.MaxEntryBytes:
		return fmt.Errorf("%w: entry %d of job %s has %d bytes, the limit is %d", ErrTooLong, rec.Seq, w.job, len(rec.Body), journal.MaxEntryBytes)
	}
	w.buf, w.entries = appendEntry(w.buf[:0], &rec), true
	return w.write(w.buf)
}

// Attachment writes what stands beside the entries of the job of Begin, before its first entry;
// otherwise it is ErrOrder. A body over journal.MaxEntryBytes is ErrTooLong.
func (w *Writer) Attachment(x journal.Attachment) error {
	switch {
	case w.job.IsZero() || w.entries:
		return fmt.Errorf("%w: %s of job %s, which stands beside its entries", ErrOrder, x.Digest, w.job)
	case len(x.Body) > journal.MaxEntryBytes:
		return fmt.Errorf("%w: what stands under %s has %d bytes, the limit is %d", ErrTooLong, x.Digest, len(x.Body), journal.MaxEntryBytes)
	}
	w.buf = appendAttachment(w.buf[:0], &x)
	return w.write(w.buf)
}

// Job writes a job: its header, what stands beside its entries (nil: nothing), then its entries.
func (w *Writer) Job(
	h Header, beside iter.Seq2[journal.Attachment, error], entries iter.Seq2[journal.Record, error],
) error {
	err := w.Begin(h)
	if err == nil && beside != nil {
		err = each(beside, w.Attachment)
	}
	if err == nil {
		err = each(entries, w.Write)
	}
	return err
}

func each[T any](all iter.Seq2[T, error], write func(T) error) error {
	for x, err := range all {
		if err == nil {
			err = write(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) write(line []byte) error {
	if _, err := w.out.Write(line); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// Flush writes out the buffer.
func (w *Writer) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}
