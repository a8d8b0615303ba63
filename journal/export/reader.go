package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quipu-journal/quipu/journal"
)

// LineError says which line of a file could not be read, and why.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error names the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Reader reads a file line by line. It is not safe for concurrent use.
type Reader struct {
	in    *bufio.Reader
	line  int
	long  []byte // a line that does not fit into the buffer
	peek  []byte // the next line, valid until the next read
	have  bool
	fault error
	job   journal.JobID
}

const bufferSize = 64 << 10

// NewReader reads from r. It holds one line at a time.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, bufferSize)} }

// Next moves to the next job of the file, past entries that were not read, and returns its
// header. At the end of the file it returns io.EOF. Any other error is a *LineError, which may
// wrap that of the underlying reader, and is final.
func (r *Reader) Next() (Header, error) {
	for {
		line, err := r.next()
		if err != nil {
			return Header{}, err
		}
		r.have = false
		if !isHeader(line) {
			if r.job.IsZero() {
				return Header{}, r.failed(fmt.Errorf("%w: want a header first", ErrFormat))
			}
			continue
		}
		if len(line) > MaxHeader {
			return Header{}, r.failed(fmt.Errorf("%w: a header of %d bytes, the limit is %d", ErrTooLong, len(line), MaxHeader))
		}
		h, err := parseHeader(line)
		if err != nil {
			return Header{}, r.failed(err)
		}
		r.job = h.Job
		return h, nil
	}
}

// Attachments yields what stands beside the entries of the job whose header Next returned last, once,
// and before Entries, which skips what was not read of it. After an error, a *LineError, it
// yields nothing more.
func (r *Reader) Attachments() iter.Seq2[journal.Attachment, error] {
	return section(r, isAttachment, parseAttachment)
}

// Entries yields the entries of the job whose header Next returned last, once. After an error, a
// *LineError, it yields nothing more.
func (r *Reader) Entries() iter.Seq2[journal.Record, error] {
	isEntry := func(line []byte) bool { return !isHeader(line) }
	entries := section(r, isEntry, func(line []byte) (journal.Record, error) {
		rec, err := parseEntry(line)
		rec.Job = r.job
		return rec, err
	})
	return func(yield func(journal.Record, error) bool) {
		for line, err := r.next(); err == nil && isAttachment(line); line, err = r.next() {
			r.have = false
		}
		entries(yield)
	}
}

// section yields what the next lines say, as far as they belong to the section.
func section[T any](r *Reader, belongs func(line []byte) bool, parse func(line []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			line, err := r.next()
			if errors.Is(err, io.EOF) && r.fault == nil || err == nil && !belongs(line) {
				return
			}
			var x T
			if err == nil {
				r.have = false
				if x, err = parse(line); err != nil {
					err = r.failed(err)
				}
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

func isHeader(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"format"`)) }

func (r *Reader) failed(err error) error {
	r.fault = &LineError{r.line, err}
	return r.fault
}

// next returns the next line; it stays the next one until have is cleared.
func (r *Reader) next() ([]byte, error) {
	if r.fault != nil {
		return nil, r.fault
	}
	if r.have {
		return r.peek, nil
	}
	line, err := r.read()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.failed(err)
	}
	r.peek, r.have = line, true
	return line, nil
}

// read reads one line of at most MaxLine bytes. A last line without its line end is an error: the
// file was cut short.
func (r *Reader) read() ([]byte, error) {
	r.line++
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = r.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			r.long = append(r.long, line...)
			if len(r.long) > MaxLine {
				return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLong, MaxLine)
			}
			line, err = r.in.ReadSlice('\n')
		}
		r.long = append(r.long, line...)
		line = r.long
	}
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: the file ends within the line: %w", ErrFormat, io.ErrUnexpectedEOF)
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case len(line)-1 > MaxLine:
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLong, MaxLine)
	}
	return line[:len(line)-1], nil
}
