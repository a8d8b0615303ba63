package engine

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/wire"
)

// Limits of a start.
const (
	MaxKey   = flow.MaxJobKey // bytes of a job's key
	MaxInput = wire.MaxResult // bytes of a job's input, in its canonical form
)

// Errors of starts, from outside and by an await.
var (
	// ErrInput: the input is no JSON, too large, or against the flow's schema.
	ErrInput = errors.New("refused input")
	// ErrKey: the key is missing, longer than MaxKey, no UTF-8, or has control
	// characters.
	ErrKey = errors.New("refused key")
)

// CheckStart checks what a job of the flow is started with, and returns its key:
// under identity strict that of the input where none is given (E16). The input is
// canonical. The error wraps ErrInput or ErrKey.
func CheckStart(f *flow.Flow, key string, input []byte) (string, error) {
	if len(input) > MaxInput {
		return "", fmt.Errorf("%w for flow %s, key %.80q: the input has %d bytes in its canonical form, the limit is %d",
			ErrInput, f.Name(), key, len(input), MaxInput)
	}
	if err := f.CheckInput(input); err != nil {
		return "", fmt.Errorf("%w for flow %s, key %.80q: %w", ErrInput, f.Name(), key, err)
	}
	if f.Identity() == flow.Strict && key == "" {
		key = f.StrictKey(input)
	}
	return key, checkKey(f, key)
}

func checkKey(f *flow.Flow, key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: flow %s takes the caller's key (identity: caller), and none was given", ErrKey, f.Name())
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d bytes, the limit is %d: %.40q…", ErrKey, len(key), MaxKey, key)
	case !printable(key):
		return fmt.Errorf("%w: %.80q: a key is UTF-8 without control characters", ErrKey, key)
	}
	return nil
}

// printable says whether the key is text that stays on its line and does nothing
// to a terminal: keys are listed one in a line.
func printable(key string) bool {
	for _, r := range key {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// Limits of the tags of a job.
const (
	MaxTags = 10
	MaxTag  = 64 // bytes
)

// CheckTags gives the tags sorted, each once. The error wraps ErrInput.
func CheckTags(tags []string) ([]string, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(tags)))
	if len(sorted) > MaxTags {
		return nil, fmt.Errorf("%w: a job has at most %d tags, these are %d", ErrInput, MaxTags, len(sorted))
	}
	for _, tag := range sorted {
		if tag == "" || len(tag) > MaxTag || !printable(tag) {
			return nil, fmt.Errorf("%w: a tag is 1 to %d bytes of UTF-8 without control characters, this one is %.80q", ErrInput, MaxTag, tag)
		}
	}
	return sorted, nil
}
