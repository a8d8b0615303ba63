package saga

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/workers"
)

// File is an agency that keeps its books in a file: one line for each call that was applied. Only
// one process at a time may write it.
type File struct {
	Path string
	mu   sync.Mutex
}

// Book implements Agency.
func (f *File) Book(_ context.Context, what, reference string) error {
	_, err := f.apply("book", what, reference)
	return err
}

// Cancel implements Agency.
func (f *File) Cancel(_ context.Context, what, reference string) error {
	_, err := f.apply("cancel", what, reference)
	return err
}

// Charge implements Agency. It refuses the card "declined", with an error that is an answer: it
// is not retried.
func (f *File) Charge(_ context.Context, key, card string) (string, error) {
	if card == "declined" {
		return "", workers.Fail(402, "the card is declined")
	}
	return f.apply("charge", card, key)
}

// Lines returns the lines of the books.
func (f *File) Lines() ([]string, error) {
	text, err := os.ReadFile(f.Path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// apply writes a line unless the file has it.
func (f *File) apply(words ...string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := strings.Join(words, " ")
	lines, err := f.Lines()
	if err != nil || slices.Contains(lines, line) {
		return line, err
	}
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	if _, err = fmt.Fprintln(file, line); err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return line, err
}
