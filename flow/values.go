package flow

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// forms check the text of a key: a literal at deploy, any other after evaluation.
var forms = map[string]func(string) error{
	"flow": func(s string) error {
		if len(s) > MaxName || !namePattern.MatchString(s) {
			return fmt.Errorf("must be a name: [a-z][a-z0-9_]*, up to %d characters", MaxName)
		}
		return nil
	},
	"version": func(s string) error {
		if len(s) > MaxVersion || !versionPattern.MatchString(s) {
			return fmt.Errorf("must be letters, digits, '.', '_' and '-', up to %d", MaxVersion)
		}
		return nil
	},
	"sleep": func(s string) error {
		_, err := sleepOf(s)
		return err
	},
	"key":    func(s string) error { return checkKey(s, MaxSignalKey) },
	"id":     func(s string) error { return checkKey(s, MaxJobKey) },
	"target": func(s string) error { return checkKey(s, MaxJobKey) },
	"reason": func(s string) error {
		if len(s) > MaxReason {
			return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), MaxReason)
		}
		return nil
	},
}

func checkKey(s string, most int) error {
	switch {
	case s == "" || len(s) > most:
		return fmt.Errorf("has %d bytes, a key has 1 to %d", len(s), most)
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("a key has no control characters")
	}
	return nil
}

func sleepOf(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("must be a duration such as 500ms, 30s or 72h")
	case d < 0 || d > MaxSleep:
		return 0, fmt.Errorf("must be from 0s to %s", shortDuration(MaxSleep))
	}
	return d, nil
}

// codeOf reads the code of a signal or an interrupt.
func codeOf(kind Type, text []byte) (int, error) {
	n, err := strconv.Atoi(string(text))
	failure := err == nil && n >= 400 && n <= 599
	switch {
	case kind == TypeInterrupt && !failure:
		return 0, errors.New("must be an integer from 400 to 599")
	case kind == TypeSignal && !failure && (err != nil || n != 200 && n != 202):
		return 0, errors.New("must be 200, 202, or an integer from 400 to 599")
	}
	return n, nil
}

// textOf is the text of a value: of a string, or a number as it is spelled, so that an
// order number can be a key.
func textOf(value []byte) (string, error) {
	switch kindOf(value) {
	case kindString:
		return canonical.Unquote(value), nil
	case kindNumber:
		return string(value), nil
	}
	return "", fmt.Errorf("must be a string, this is %s", kindOf(value))
}

// kindOf is the kind of a canonical value, for messages that must not show it.
func kindOf(value []byte) kind {
	switch value[0] {
	case '{':
		return kindMap
	case '[':
		return kindList
	case '"':
		return kindString
	case 't', 'f':
		return kindBool
	case 'n':
		return kindNull
	}
	return kindNumber
}

// elementsOf splits the list of an `each`.
func elementsOf(list []byte) ([][]byte, error) {
	if kindOf(list) != kindList {
		return nil, fmt.Errorf("must be a list, this is %s", kindOf(list))
	}
	if len(list) > MaxMappedBytes {
		return nil, fmt.Errorf("the list has %d bytes, at most %d are allowed", len(list), MaxMappedBytes)
	}
	elements := slices.Collect(canonical.Elements(list))
	if len(elements) > MaxElements {
		return nil, fmt.Errorf("the list has %d elements, at most %d are allowed", len(elements), MaxElements)
	}
	return elements, nil
}
