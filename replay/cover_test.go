package replay_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// at lists the values at a path in a value: in lists those of all elements, or of those that fit.
func at(v reflect.Value, path string) (all []reflect.Value) {
	if path == "" {
		return []reflect.Value{v}
	}
	if v = reflect.Indirect(v); !v.IsValid() {
		return nil
	}
	name, rest, _ := strings.Cut(path, ".")
	name, only, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	field := v.FieldByName(name)
	if field.Kind() != reflect.Slice {
		return at(field, rest)
	}
	for i := range field.Len() {
		if only == "" || only == fmt.Sprint(i) || strings.Contains(only, "=") && holds(field.Index(i), only) {
			all = append(all, at(field.Index(i), rest)...)
		}
	}
	return all
}

// operator parts a condition: not, path, operator, value.
var operator = regexp.MustCompile(`^(!?)([\w.]+(?:\[[\w=]+\])?[\w.]*)(!=|=|~|$)(.*)$`)

// holds reports whether a value fits a condition.
func holds(v reflect.Value, condition string) bool {
	m := operator.FindStringSubmatch(condition)
	found := slices.ContainsFunc(at(v, m[2]), func(x reflect.Value) bool {
		text := fmt.Sprint(reflect.Indirect(x))
		return m[3] == "" && !x.IsZero() || m[3] == "~" && strings.Contains(text, m[4]) ||
			strings.HasSuffix(m[3], "=") && text == m[4]
	})
	return found != (m[1] == "!" || m[3] == "!=")
}

// arrives reports whether the entry adds an arrival at a join whose taken digit is as given.
func arrives(e *journal.Entry, taken bool) bool {
	return slices.ContainsFunc(e.Moves(), func(m journal.LedgerMove) bool {
		return m.After/hundredM%100 > 0 && taken == (m.After/tenB%10 > 0)
	})
}

// The generator makes every fact that a law looks at.
func TestHonestFamiliesHaveEveryFeature(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/features.txt")
	require.NoError(t, err)
	missing := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if name, conditions, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
			missing[name] = strings.Fields(conditions)
		}
	}
	require.Greater(t, len(missing), 70)
	known := map[string]func(e *journal.Entry) bool{
		"@held":    func(e *journal.Entry) bool { return e.Elements.Parallel < e.Elements.Count },
		"@taken":   func(e *journal.Entry) bool { return arrives(e, true) },
		"@skipped": func(e *journal.Entry) bool { return arrives(e, false) },
	}
	for seed := uint64(1); len(missing) > 0 && seed < 400; seed++ {
		for _, mode := range modes {
			for _, j := range replaytest.Family(replaytest.Options{
				Every: true, Mode: mode, Activities: 25, Trouble: seed%4 > 0,
				Choose:    rand.New(rand.NewPCG(seed, 3)).IntN,
				Functions: seed%2 > 0, Effects: seed%2 > 0,
			}) {
				for _, e := range j.Entries() {
					for name, conditions := range missing {
						if !slices.ContainsFunc(conditions, func(c string) bool {
							if known[c] != nil {
								return !known[c](e)
							}
							return !holds(reflect.ValueOf(e), c)
						}) {
							delete(missing, name)
						}
					}
				}
			}
		}
	}
	require.Empty(t, missing)
}
