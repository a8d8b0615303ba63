package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/effects"
)

// answer is how long a service outside takes to answer after it has done what it was asked for.
// A process that is killed in that time does not know that it was done.
const answer = 3 * time.Second

// book is a service outside. It writes a line for each call that it applies.
type book struct {
	path      string
	knowsKeys bool // it applies a key once
}

// enter applies a call, and answers late.
func (b book) enter(ctx context.Context, key, what string) (string, error) {
	line := key[:8] + " " + what
	if known, err := os.ReadFile(b.path); err == nil && b.knowsKeys && strings.Contains(string(known), line+"\n") {
		return line, nil
	}
	file, err := os.OpenFile(b.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", effects.NotDone(err)
	}
	defer func() { _ = file.Close() }() // the line is written, or it is not
	if _, err := fmt.Fprintln(file, line); err != nil {
		return "", err
	}
	select {
	case <-time.After(answer):
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
