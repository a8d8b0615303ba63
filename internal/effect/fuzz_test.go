package effect

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
)

// picky is a type that no result fits.
type picky struct{}

func (*picky) UnmarshalJSON([]byte) error { return errors.New("no") }

// FuzzAnswer: a verifier's answer decides only if it can be recorded: with a known state,
// a canonical result within the limits, and a note that is text (3.3).
func FuzzAnswer(f *testing.F) {
	f.Add("done", []byte(`{"id": 7.0}`), "seen")
	f.Add("not_done", []byte(nil), "")
	f.Add("maybe", []byte(`{}`), "a\x00b")
	f.Add("done", []byte(`{"a":1,"a":2}`), "twice")
	f.Fuzz(func(t *testing.T, state string, result []byte, note string) {
		for _, wanted := range []reflect.Type{nil, reflect.TypeFor[picky]()} {
			a, err := readAnswer(effects.Answer{State: effects.State(state), Result: result, Note: note},
				&Call{result: wanted}, nil)
			if err != nil {
				require.Zero(t, a)
				continue
			}
			require.Contains(t, []effects.State{effects.StateDone, effects.StateNotDone, effects.StateUnknown}, a.State)
			require.Equal(t, wire.CutText(note), a.Note)
			if a.Result == nil {
				continue
			}
			require.True(t, a.State == effects.StateDone && wanted == nil && len(a.Result) <= wire.MaxResult)
			got, err := canonical.Payload(a.Result)
			require.NoError(t, err)
			require.Equal(t, string(got), string(a.Result))
		}
	})
}

// FuzzLabel: the recorded name of an effect gives back its explicit key (E2).
func FuzzLabel(f *testing.F) {
	f.Add("charge", "order-1", `{"a":1}`, true)
	f.Add("a", "]", "", true)
	for _, key := range []string{"a", "a]", "[a]", "x]{0123456789abcdef}", "}", "{}"} {
		f.Add("a", key, "", true)
		f.Add("a", key, `"x"`, true)
	}
	f.Add("a", "", `"x"`, false)
	f.Add("a", "", "", false)
	f.Fuzz(func(t *testing.T, name, key, args string, keyed bool) {
		options := []effects.Option{}
		if keyed {
			options = append(options, effects.WithKey(key))
		}
		c := callOf(name, options...)
		if c.err != nil {
			require.ErrorIs(t, c.err, effects.ErrUsage)
			return
		}
		if payload, err := canonical.Payload([]byte(args)); err == nil {
			c.args = payload
		}
		got, is := explicitOf(c.label())
		require.Equal(t, keyed, is)
		if keyed {
			require.Equal(t, key, got)
		}
		require.True(t, strings.HasPrefix(c.label(), name))
	})
}

// E6: the limit of a verifier's result is for its canonical form, in which 1e20 is
// spelled out.
func TestE6AnswersLimitIsOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	large := []byte("[" + strings.Repeat("1e20,", wire.MaxResult/5-1) + "1e20]")
	require.LessOrEqual(t, len(large), wire.MaxResult)
	_, err := readAnswer(effects.Answer{State: effects.StateDone, Result: large}, &Call{}, nil)
	require.ErrorContains(t, err, "canonical form")
}
