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

// maxIDs bounds the ids that a command takes.
const maxIDs = 1_000_000

// keys are the arguments, or where the only one is "-" the lines of standard
// input, as they are: a key may begin and end with spaces. Empty lines are left
// out.
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

// numbers are keys that are ids of dead letters.
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

// maxPayload bounds what is read of a payload: twice the limit of the runtime,
// which counts its canonical form.
const maxPayload = 2 * quipu.MaxInput

// payload is the JSON of a flag or an argument, which name says: itself, @FILE, or - for standard input.
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
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(text)) > limit {
		return nil, cli.Exitf(codeRefused, "%s has more than %d bytes", path, limit)
	}
	return text, nil
}

// worst keeps the least exit code other than 0 of several items.
type worst int

func (w *worst) add(code int) {
	if code != cli.CodeOK && (*w == cli.CodeOK || code < int(*w)) {
		*w = worst(code)
	}
}

// err ends the command with the code; the items' errors were printed.
func (w worst) err() error {
	if w == cli.CodeOK {
		return nil
	}
	return cli.Exit(int(w), cli.ErrReported)
}
