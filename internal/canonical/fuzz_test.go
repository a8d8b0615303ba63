package canonical_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// FuzzTakeApart: a canonical value that is taken apart and rebuilt has the same bytes, and its
// strings have the content that encoding/json reads.
func FuzzTakeApart(f *testing.F) {
	for _, seed := range []string{`{"a":{"":[1,"x\"y\\"]},"b,}":[],"ü":"\u0001"}`, `[[],[{}],"]",1e400,null]`, `"é\ud83d\ude00\u0000"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		value, err := canonical.Payload(src)
		if err != nil {
			return
		}
		require.Equal(t, string(value), string(rebuild(t, value)))
	})
}

// rebuild makes a value anew from its parts.
func rebuild(t *testing.T, value []byte) []byte {
	switch value[0] {
	case '{':
		var parts [][]byte
		for key, inner := range canonical.Members(value) {
			parts = append(parts, append(append(rebuild(t, key), ':'), rebuild(t, inner)...))
		}
		return append(append([]byte{'{'}, bytes.Join(parts, []byte{','})...), '}')
	case '[':
		var parts [][]byte
		for inner := range canonical.Elements(value) {
			parts = append(parts, rebuild(t, inner))
		}
		return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
	case '"':
		var want string
		require.NoError(t, json.Unmarshal(value, &want))
		require.Equal(t, want, canonical.Unquote(value))
		return canonical.AppendString(nil, want)
	}
	return value
}

// FuzzString: a text that a payload may contain is written as a canonical string and read back
// unchanged.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\"b\\c", "\x01\x1f\x7f\u2028", "\u00e9\U0001F600"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || bytes.IndexByte([]byte(s), 0) >= 0 {
			return // callers never pass these
		}
		text := canonical.AppendString([]byte("x"), s)[1:]
		got, err := canonical.Payload(text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(got))
		require.Equal(t, s, canonical.Unquote(text))
	})
}

// FuzzInt: an integer is written as a payload spells it.
func FuzzInt(f *testing.F) {
	for _, seed := range []int64{0, -1, 100, 1e15, 9007199254740993, -9223372036854775808, 9223372036854775807} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		text := canonical.AppendInt(nil, n)
		got, err := canonical.Payload(text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(got))
	})
}
