package engine

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/wire"
)

// Limits of a start.
const (
	MaxKey   = flow.MaxJobKey // bytes of a job's key
	MaxInput = wire.MaxResult // bytes of a job's input, in its canonical form
)

// Errors of starts, from outside and by an await.
var (
	// ErrInput says that the input is no JSON, too large, or against the flow's schema.
	ErrInput = errors.New("refused input")
	// ErrKey says that the key is missing, longer than MaxKey, not UTF-8, or has control
	// characters.
	ErrKey = errors.New("refused key")
)

// CheckStart checks the key and the canonical input of a start, and returns what the space keeps
// of the key: kept(key) (S15). Under identity strict a missing key is derived from the input
// (E16). stop is asked now and then whether the check takes too long; nil: never. Errors: ErrInput,
// ErrKey, flow.ErrStopped: the input is not checked.
func CheckStart(
	f *flow.Flow, key string, input []byte, kept func(key string) string, stop func() bool) (string, error,
) {
	if f.Identity() == flow.Strict && key == "" {
		key = f.StrictKey(input)
	}
	if err := checkKey(f, key); err != nil {
		return "", err
	}
	key = kept(key)
	if len(input) > MaxInput {
		return "", fmt.Errorf("%w for flow %s, key %.80q: the input has %d bytes in its canonical form, the limit is %d",
			ErrInput, f.Name(), key, len(input), MaxInput)
	}
	switch err := f.CheckInput(input, flow.NewBudget(stop)); {
	case errors.Is(err, flow.ErrStopped):
		return "", fmt.Errorf("the input for flow %s, key %.80q is not checked: %w", f.Name(), key, err)
	case err != nil:
		return "", fmt.Errorf("%w for flow %s, key %.80q: %w", ErrInput, f.Name(), key, err)
	}
	return key, nil
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

// printable reports whether the key is plain text. Keys are listed one per line, so a key must
// not break the line or control a terminal.
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

// CheckTags returns the tags sorted and without duplicates. Error: ErrInput.
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
