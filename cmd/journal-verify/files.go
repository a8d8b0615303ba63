package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

// fileUnits makes one unit of each file, and sums up their sizes.
func fileUnits(files []string, stdin io.Reader) (iter.Seq2[unit, error], total) {
	var of total
	for _, name := range files {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			of.bytes = 0 // unknown
			break
		}
		of.bytes += info.Size()
	}
	return func(yield func(unit, error) bool) {
		for _, name := range files {
			if !yield(fileUnit(name, stdin), nil) {
				return
			}
		}
	}, of
}

func fileUnit(name string, stdin io.Reader) unit {
	return func(ctx context.Context, emit func(outcome)) {
		in := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				emit(outcome{source: name, err: cli.PathError(err)})
				return
			}
			defer f.Close()
			in = f
		}
		verifyFile(ctx, name, in, emit)
	}
}

// verifyFile verifies the jobs of one export. It stops at a line that cannot be read, since the
// lines after it may mean anything.
func verifyFile(ctx context.Context, name string, in io.Reader, emit func(outcome)) {
	bar := progressOf(ctx)
	r, flows := export.NewReader(&meter{in, bar}), replay.NewFlows(cli.Build())
	for jobs := 0; ; jobs++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) && jobs > 0 {
			return
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		if err != nil {
			emit(outcome{source: name, err: fmt.Errorf("%s: %w", name, err)})
			return
		}
		report, err := verifyJob(&h, r, flows, watched(ctx, bar, r.Entries()))
		if err != nil {
			emit(outcome{source: name, job: h.Job, err: fmt.Errorf("%s: %w", name, err)})
			return
		}
		if report.From != nil {
			report.Unproved("what it took over from earlier generations is compared in a database, which has their journals")
		}
		bar.job()
		emit(outcome{source: name, job: h.Job, report: report})
	}
}

// verifyJob verifies one job of an export with what stands beside its entries.
func verifyJob(
	h *export.Header, r *export.Reader, flows *replay.Flows, entries iter.Seq2[journal.Record, error],
) (*replay.Report, error) {
	beside, err := replay.ReadAttachments(r.Attachments())
	if err != nil {
		return nil, err
	}
	beside.Flows = flows
	return replay.Verify(replay.Header{
		Space: h.Space, Job: h.Job, Key: h.Key, Generation: h.Generation, Head: h.Head, Flow: h.Flow,
	}, nil, beside, entries)
}

// watched counts entries, and stops when the context ends.
func watched(ctx context.Context, bar *progress, in iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record, error] {
	const often = 1024
	return func(yield func(journal.Record, error) bool) {
		n := 0
		defer func() { bar.entries(n) }()
		for rec, err := range in {
			if n++; n == often {
				bar.entries(n)
				n = 0
				if ctx.Err() != nil {
					err = ctx.Err()
				}
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// meter counts the bytes that are read.
type meter struct {
	in  io.Reader
	bar *progress
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.bar.bytes(n)
	return n, err
}
