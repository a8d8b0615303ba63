package canonical_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/canonical"
)

func TestScanner(t *testing.T) {
	t.Parallel()
	src := []byte(` { "a\n": -12, "b": [true, false, null, {}, []],` + "\t" + `"c": {"z": 1e2, "y": "\u0041"}, "": "é\/" } `)
	s := canonical.Scan(src)
	var got []string
	for s.Enter('{'); s.Next('}'); {
		switch key := string(s.Key()); key {
		case "a\n":
			require.Equal(t, int64(-12), s.Int())
		case "b":
			s.Enter('[')
			require.True(t, s.Next(']') && s.Bool())
			require.True(t, s.Next(']') && !s.Null())
			require.False(t, s.Bool())
			require.True(t, s.Next(']') && s.Null())
			require.True(t, s.Next(']'))
			require.Equal(t, `{}`, string(s.Skip()))
			require.True(t, s.Next(']'))
			require.Equal(t, strings.Index(string(src), "[]"), s.At())
			require.Equal(t, byte('['), s.Peek())
			require.Equal(t, `[]`, string(s.Form()))
			require.False(t, s.Next(']'))
		case "c":
			require.Equal(t, `{"y":"A","z":100}`, string(s.Form()))
		case "":
			require.Equal(t, "é/", string(s.Text()))
		default:
			t.Errorf("key %q", key)
		}
		got = append(got, "")
	}
	require.Nil(t, s.End())
	require.Len(t, got, 4)
}

// The first fault stays, and nothing is read after it.
func TestScannerStopsAtTheFirstFault(t *testing.T) {
	t.Parallel()
	read := func(s *canonical.Scanner) {
		for s.Enter('{'); s.Next('}'); {
			switch string(s.Key()) {
			case "n":
				s.Int()
			case "t":
				s.Text()
			case "b":
				s.Bool()
			case "l":
				for s.Enter('['); s.Next(']'); {
					s.Skip()
				}
			case "odd":
				require.True(t, s.Fail("of no use"))
				require.False(t, s.Fail("of less"))
			}
		}
	}
	for src, want := range map[string]string{
		`{"n":1.5}`:                  "$.n (byte 5): not an integer of 64 bits",
		`{"n":-}`:                    "$.n (byte 6): '}' where a digit should be",
		`{"n":9223372036854775808}`:  "$.n (byte 5): not an integer of 64 bits",
		`{"n":01}`:                   "$.n (byte 5): a number with a zero in front",
		`{"t":null}`:                 "$.t (byte 5): 'n' where a string should be",
		`{"b":tru}`:                  "$.b (byte 5): 't' where a value should be",
		`{"b":1}`:                    "$.b (byte 5): '1' where true or false should be",
		`{"l":{}}`:                   "$.l (byte 5): '{' where '[' should be",
		`{"l":[1,]}`:                 "$.l[1] (byte 8): ']' where a value should be",
		`{"l":["a"b]}`:               "$.l[0] (byte 9): 'b' where ',' or ']' should be",
		`{"l":[[1]`:                  "$.l[0] (byte 9): the text ends where ',' or ']' should be",
		`{"odd":1,"n":"x"}`:          "$.odd (byte 7): of no use",
		"{\"t\":\"\xff\"}":           "$.t (byte 6): invalid UTF-8",
		`{"t":"a","b":true,"é" "":1`: "$[\"é\"] (byte 23): '\"' where ':' should be",
		`{"n":1} x`:                  "$ (byte 8): more text behind the value",
	} {
		s := canonical.Scan([]byte(src))
		read(&s)
		fault := s.End()
		require.NotNil(t, fault, src)
		require.Contains(t, fault.Error(), want, src)
		require.Same(t, fault, s.End())
		require.Zero(t, s.Peek())
		require.Nil(t, s.Form())
		require.Nil(t, s.Skip())
		require.Zero(t, s.Int())
	}
}

func TestLooseScanner(t *testing.T) {
	t.Parallel()
	s := canonical.Scan([]byte("[\"a\\ud800b\xffc\",\"\\ud800\"]"))
	s.Loose = true
	s.Enter('[')
	require.True(t, s.Next(']'))
	require.Equal(t, "a\uFFFDb\uFFFDc", string(s.Text()))
	require.True(t, s.Next(']'))
	require.Nil(t, s.Form(), "a canonical form is never loose")
	require.ErrorContains(t, s.End(), "half a surrogate pair")
}
