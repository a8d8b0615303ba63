package canonical_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// TestTranscripts shows the form of payloads, or why they are refused. Payloads with bytes that no
// text has are in the tests below.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/payloads.txt", func(t *testing.T, d *datadriven.TestData) string {
		got, err := canonical.Payload([]byte(d.Input))
		if err != nil {
			require.ErrorAs(t, err, new(*canonical.Error))
			return err.Error() + "\n"
		}
		again, err := canonical.Payload(got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
		return string(got) + "\n"
	})
}

func TestPayloadForm(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", canonical.MaxDigits)
	for _, c := range []struct{ name, in, out string }{
		{"words", "[ true,false ,\tnull\n]", "[true,false,null]"},
		{"empty", ` { } `, `{}`},
		{"empty array", "[\n]", `[]`},
		{"many digits", nines, nines},
		{"keys by bytes", "{\"\U00010000\":1,\"\uffee\":2}", "{\"\uffee\":2,\"\U00010000\":1}"},
		{"escapes", `"\u0041\/\u00e9\ud83d\ude00\u007f\u2028"`, "\"A/é😀\u007f\u2028\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical.Payload([]byte(c.in))
			require.NoError(t, err)
			require.Equal(t, c.out, string(got))
			again, err := canonical.Payload(got)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again))
		})
	}
}

func TestPayloadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, path string
		offset         int
		reason         string
	}{
		{"nothing", ``, "$", 0, "ends where a value"},
		{"white space", ` `, "$", 1, "ends where a value"},
		{"raw U+0000", "\"\x00\"", "$", 1, "must be escaped"},
		{"invalid UTF-8", "[\"a\xff\"]", "$[0]", 3, "UTF-8"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "$", 1, "UTF-8"},
		{"overlong", "\"\xc0\x80\"", "$", 1, "UTF-8"},
		{"newline in string", "\"a\nb\"", "$", 2, "U+000A"},
		{"digits", strings.Repeat("9", canonical.MaxDigits+1), "$", 0, "1000 digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := canonical.Payload([]byte(c.in))
			var refusal *canonical.Error
			require.ErrorAs(t, err, &refusal)
			require.Contains(t, refusal.Reason, c.reason)
			require.Equal(t, c.offset, refusal.Offset)
			require.Equal(t, c.path, refusal.Path)
			require.Contains(t, err.Error(), c.path)
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	_, err := canonical.Payload(nest(canonical.MaxDepth))
	require.NoError(t, err)
	_, err = canonical.Payload(nest(canonical.MaxDepth + 1))
	require.ErrorContains(t, err, "nested deeper than 200")
}

// Canonical input, the engine's usual input, costs no allocation.
func TestCanonicalInputIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	src := []byte(`{"amount":12.5,"id":"a\nb","lines":[{"n":1,"sku":"ü"},{"n":-20,"sku":""}],"total":9007199254740993}`)
	got, err := canonical.Payload(src)
	require.NoError(t, err)
	require.Same(t, &src[0], &got[0])
}

func TestAppend(t *testing.T) {
	t.Parallel()
	require.Equal(t, `-9223372036854775808`, string(canonical.AppendInt(nil, -1<<63)))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "")
		got := canonical.AppendString(nil, text)
		var back string
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, text, back)
		same, err := canonical.Payload(got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(same))
	})
}

func TestReading(t *testing.T) {
	t.Parallel()
	var got []string
	for key, value := range canonical.Members([]byte(`{"a\"":"x,}","b":{"c":[1]},"d":[]}`)) {
		got = append(got, canonical.Unquote(key), string(value))
	}
	require.Equal(t, []string{`a"`, `"x,}"`, "b", `{"c":[1]}`, "d", "[]"}, got)
	got = nil
	for element := range canonical.Elements([]byte(`[[1,2],"],",{"a":[]},3]`)) {
		got = append(got, string(element))
	}
	require.Equal(t, []string{"[1,2]", `"],"`, `{"a":[]}`, "3"}, got)
	for range canonical.Members([]byte(`{}`)) {
		t.Error("an empty object has no members")
	}
	for range canonical.Elements([]byte(`[]`)) {
		t.Error("an empty array has no elements")
	}
}

// Every spelling of a number has one form, and the form has the same value.
func TestNumberSpellings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,30}`).Draw(t, "digits")
		exponent := rapid.IntRange(-60, 60).Draw(t, "exponent")
		zeros := rapid.IntRange(0, 9).Draw(t, "zeros")
		plain := digits + "e" + strconv.Itoa(exponent)
		padded := digits + strings.Repeat("0", zeros) + ".000E" + strconv.Itoa(exponent-zeros)
		point := "0." + digits + "e" + strconv.Itoa(exponent+len(digits))
		want, err := canonical.Payload([]byte(plain))
		require.NoError(t, err)
		for _, spelling := range []string{padded, point} {
			got, err := canonical.Payload([]byte(spelling))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), spelling)
		}
	})
}

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,-0,1e400],"a":"\u00e9\ud83d\ude00\/"}`, `{"a":1,"a":2}`, `"\ud800"`, "[[[", `{"a":{"c":1,"b":[{}]},"":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		got, err := canonical.Payload(src)
		within, alone := only(append(append([]byte(" [ "), src...), ']'))
		require.Equal(t, before, src, "the input was changed")
		require.Equal(t, err == nil, alone, "a value within others is a value")
		if err != nil {
			var refusal *canonical.Error
			require.ErrorAs(t, err, &refusal)
			require.LessOrEqual(t, refusal.Offset, len(src))
			return
		}
		require.Equal(t, string(got), string(within))
		require.True(t, json.Valid(src))
		require.True(t, json.Valid(got))
		again, err := canonical.Payload(got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
	})
}

// only returns the single element of a canonical list, if the list has just one.
func only(list []byte) ([]byte, bool) {
	s := canonical.Scan(list)
	s.Enter('[')
	if !s.Next(']') {
		return nil, false
	}
	form := s.Form()
	return form, !s.Next(']') && s.End() == nil
}

func BenchmarkPayload(b *testing.B) {
	src := []byte(`{"amount":12.5,"id":"a\nb","lines":[{"n":1,"sku":"ü"},{"n":-20,"sku":""}],"total":9007199254740993}`)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonical.Payload(src); err != nil {
			b.Fatal(err)
		}
	}
}
