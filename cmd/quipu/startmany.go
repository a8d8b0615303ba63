package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/store"
)

const (
	// maxLine bounds a line of JSON Lines in bytes: its input and the rest.
	maxLine = maxPayload + 64<<10
	// startAttempts bounds the attempts of a batch while the database is away. startPause is the
	// first pause between them; it doubles up to startPauseMost.
	startAttempts  = 8
	startPause     = 250 * time.Millisecond
	startPauseMost = 30 * time.Second
)

// line is one job to start.
type line struct {
	Flow    string
	Version string
	Key     string
	Input   json.RawMessage
	Delay   string // for example 90s
	At      time.Time
	Tags    []string
}

// starter starts the lines of a file in batches of quipu.MaxStarts.
type starter struct {
	*app
	rt  *quipu.Runtime
	who string // asks

	lines    int // read so far
	requests []quipu.StartRequest
	numbers  []int // the line number of each request

	Started, Already, Refused int
	code                      worst
}

func (a *app) startMany(ctx context.Context, rt *quipu.Runtime, who string) error {
	s := &starter{app: a, rt: rt, who: who}
	err := s.read(ctx, bufio.NewReaderSize(a.streams.In, 64<<10))
	if err == nil {
		err = s.flush(ctx)
	}
	if cli.Terminal(a.streams.Err) {
		fmt.Fprint(a.streams.Err, "\r\x1b[K")
	}
	if a.json() {
		if e := a.object(map[string]int{"lines": s.lines, "started": s.Started, "already": s.Already, "refused": s.Refused}); err == nil {
			err = e
		}
	} else {
		fmt.Fprintf(a.streams.Out, "%d started, %d already started, %d refused\n", s.Started, s.Already, s.Refused)
	}
	if err != nil {
		return fmt.Errorf("%w (start the same lines again: what was started stays as it is)", err)
	}
	return s.code.err()
}

// read reads the lines one by one and starts each full batch.
func (s *starter) read(ctx context.Context, r *bufio.Reader) error {
	for {
		text, err := readLine(r)
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		s.lines++
		switch {
		case errors.Is(err, errLongLine):
			s.refuse(s.lines, err)
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("read standard input: %w", err)
		}
		if err := s.take(ctx, text); err != nil {
			return err
		}
	}
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes", maxLine)

// readLine reads a line of at most maxLine bytes without its end, and skips a longer one. At the
// end of the file it returns the rest with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxLine; !long {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, errLongLine
		}
		return bytes.TrimRight(text, "\r\n"), err
	}
}

func (s *starter) take(ctx context.Context, text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var l line
	err := canonical.Object(text, map[string]any{
		"flow": &l.Flow, "version": &l.Version, "key": &l.Key, "input": &l.Input, "delay": &l.Delay, "at": &l.At, "tags": &l.Tags,
	})
	if err == nil && l.Flow == "" {
		err = errors.New(`"flow" is missing`)
	}
	delay := time.Duration(0)
	if err == nil && l.Delay != "" {
		delay, err = time.ParseDuration(l.Delay)
	}
	if err != nil {
		s.refuse(s.lines, fmt.Errorf(`%w: a line is {"flow": …, "key": …, "input": …}`, err))
		return nil
	}
	if l.Input == nil {
		l.Input = json.RawMessage("{}")
	}
	s.requests = append(s.requests, quipu.StartRequest{
		Flow: l.Flow, Version: l.Version, Key: l.Key, Input: l.Input, Delay: delay, At: l.At, Tags: l.Tags, Who: s.who,
	})
	s.numbers = append(s.numbers, s.lines)
	if len(s.requests) < quipu.MaxStarts {
		return nil
	}
	return s.flush(ctx)
}

func (s *starter) refuse(number int, err error) {
	s.Refused++
	s.code.add(codeRefused)
	fmt.Fprintf(s.streams.Err, "line %d: %s\n", number, cli.Harmless(err))
}

// flush starts the batch.
func (s *starter) flush(ctx context.Context) error {
	if len(s.requests) == 0 {
		return nil
	}
	results, err := s.start(ctx)
	if err != nil {
		return fmt.Errorf("lines %d to %d: %w", s.numbers[0], s.numbers[len(s.numbers)-1], err)
	}
	for i, r := range results {
		switch {
		case r.Err == nil && r.Job.Existing:
			s.Already++
		case r.Err == nil:
			s.Started++
		case retryable(r.Err):
			return fmt.Errorf("line %d: %w", s.numbers[i], r.Err)
		default:
			s.refuse(s.numbers[i], different(r.Err))
		}
	}
	s.requests, s.numbers = s.requests[:0], s.numbers[:0]
	if cli.Terminal(s.streams.Err) {
		fmt.Fprintf(s.streams.Err, "\r\x1b[K%s, %d started", counted(s.lines, "line"), s.Started)
	}
	return nil
}

// retryable says that nothing was started, or that it is unknown. Both times the call may be
// repeated (C8).
func retryable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)
}

// start starts the batch, and repeats that while the database is away.
func (s *starter) start(ctx context.Context) ([]quipu.StartResult, error) {
	for attempt := 1; ; attempt++ {
		results, err := s.rt.StartMany(ctx, s.requests)
		if err == nil || !retryable(err) || attempt == startAttempts {
			return results, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(backoff.Delay(attempt-1, startPause, startPauseMost, rand.N[time.Duration])):
		}
	}
}
