package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// maxIDs bounds the ids that one command takes.
const maxIDs = 1_000_000

// keys returns the arguments, or, if the only one is "-", the lines of standard input. Lines are
// not trimmed, since a key may begin or end with spaces; empty lines are skipped.
func (a *app) keys(args []string) ([]string, error) {
	if len(args) != 1 || args[0] != "-" {
		return args, nil
	}
	var keys []string
	lines := 0
	s := bufio.NewScanner(a.streams.In)
	s.Buffer(nil, quipu.MaxKey+2)
	for s.Scan() {
		lines++
		if key := s.Text(); key != "" {
			keys = append(keys, key)
		}
		if len(keys) > maxIDs {
			return nil, cli.Exitf(cli.CodeUsage, "standard input has more than %d ids", maxIDs)
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return nil, cli.Exitf(codeRefused, "standard input, line %d: an id is at most %d bytes", lines+1, quipu.MaxKey)
	}
	if s.Err() != nil {
		return nil, fmt.Errorf("read standard input: %w", s.Err())
	}
	return keys, nil
}

// numbers returns the ids of dead letters.
func (a *app) numbers(args []string) ([]int64, error) {
	keys, err := a.keys(args)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(keys))
	for i, key := range keys {
		if ids[i], err = strconv.ParseInt(strings.TrimSpace(key), 10, 64); err != nil || ids[i] <= 0 {
			return nil, cli.Exitf(cli.CodeUsage, "dead letter %.40q: its id is a number, which `quipu dead ls` shows", key)
		}
	}
	return ids, nil
}

// maxPayload bounds the bytes that are read of a payload. It is twice the runtime's limit, which
// holds for the canonical form.
const maxPayload = 2 * quipu.MaxInput

// payload returns the JSON of a flag or argument: value itself, @FILE, or - for standard input.
func (a *app) payload(name, value string) ([]byte, error) {
	path, isFile := strings.CutPrefix(value, "@")
	if !isFile && value != "-" {
		return []byte(value), nil
	}
	text, err := a.read(path, maxPayload)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// read reads a file of at most limit bytes; - is standard input.
func (a *app) read(path string, limit int64) ([]byte, error) {
	from := a.streams.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, cli.PathError(err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, cli.PathError(err)
	}
	if int64(len(text)) > limit {
		return nil, cli.Exitf(codeRefused, "%s has more than %d bytes", path, limit)
	}
	return text, nil
}

// worst keeps the lowest exit code of several items, 0 excluded.
type worst int

func (w *worst) add(code int) {
	if code != cli.CodeOK && (*w == cli.CodeOK || code < int(*w)) {
		*w = worst(code)
	}
}

// err ends the command with the code; the errors themselves were printed.
func (w worst) err() error {
	if w == cli.CodeOK {
		return nil
	}
	return cli.Exit(int(w), cli.ErrReported)
}
