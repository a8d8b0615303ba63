package canonical_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/canonical"
)

func TestPayloadForm(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", canonical.MaxDigits)
	for _, c := range []struct{ name, in, out string }{
		{"words", "[ true,false ,\tnull\n]", "[true,false,null]"},
		{"empty", ` { } `, `{}`},
		{"empty array", "[\n]", `[]`},
		{"exponent", `1e2`, `100`},
		{"capital exponent", `1E+2`, `100`},
		{"fraction of zeros", `100.00`, `100`},
		{"beyond a double", `9007199254740993`, `9007199254740993`},
		{"exact fraction", `0.10000000000000000001`, `0.10000000000000000001`},
		{"minus zero", `-0`, `0`},
		{"minus zero point zero", `[-0.00,-0e7]`, `[0,0]`},
		{"zero with any exponent", `0e99999999999999999999`, `0`},
		{"point moves", `[12.5e1,125e-1,1.25e-3,-0.5]`, `[125,12.5,0.00125,-0.5]`},
		{"int64", `[-9223372036854775808,9e18]`, `[-9223372036854775808,9000000000000000000]`},
		{"most zeros", `[1e20,1e21,1e-20,1e-21]`, `[100000000000000000000,1e21,0.00000000000000000001,1e-21]`},
		{"scientific", `[-12300e30,0.00123e-30]`, `[-1.23e34,1.23e-33]`},
		{"many digits", nines, nines},
		{"limits of the exponent", `[1e1000,1e-1000]`, `[1e1000,1e-1000]`},
		{"keys in order", `{"b":1,"a":2,"aa":{"z":1,"y":2}}`, `{"a":2,"aa":{"y":2,"z":1},"b":1}`},
		{"keys by bytes", "{\"\U00010000\":1,\"\uffee\":2}", "{\"\uffee\":2,\"\U00010000\":1}"},
		{"keys by what they say", `{"a\"":1,"a!":2,"\u0041":3}`, `{"A":3,"a!":2,"a\"":1}`},
		{"escaped keys in order", `{"a!":2,"a\"":1}`, `{"a!":2,"a\"":1}`},
		{"escapes", `"\u0041\/\u00e9\ud83d\ude00\u007f\u2028"`, "\"A/é😀\u007f\u2028\""},
		{"kept escapes", `"\b\t\n\f\r\"\\\u001f"`, `"\b\t\n\f\r\"\\\u001f"`},
		{"short escapes", `"\u0008\u0009\u000a\u000C\u000d\u0022\u005c\u001F"`, `"\b\t\n\f\r\"\\\u001f"`},
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
		{"duplicate key", `{"a":1,"b":{"c":1,"c":2}}`, "$.b", 18, `key "c" comes twice`},
		{"duplicate behind escapes", `{"b":0,"a":1,"\u0061":2}`, "$", 13, `key "a" comes twice`},
		{"U+0000", `{"k":["\u0000"]}`, "$.k[0]", 7, "U+0000"},
		{"raw U+0000", "\"\x00\"", "$", 1, "must be escaped"},
		{"lone high surrogate", `"\ud800"`, "$", 1, "surrogate"},
		{"lone low surrogate", `"\udc00\ud800"`, "$", 1, "surrogate"},
		{"high and high", `"\ud800\ud800"`, "$", 1, "surrogate"},
		{"invalid UTF-8", "[\"a\xff\"]", "$[0]", 3, "UTF-8"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "$", 1, "UTF-8"},
		{"overlong", "\"\xc0\x80\"", "$", 1, "UTF-8"},
		{"newline in string", "\"a\nb\"", "$", 2, "U+000A"},
		{"trailing", `{} {}`, "$", 3, "more text"},
		{"zero in front", `[1,01]`, "$[1]", 3, "zero in front"},
		{"bare minus", `-`, "$", 1, "a digit"},
		{"bare point", `1.`, "$", 2, "a digit"},
		{"bare exponent", `1e`, "$", 2, "a digit"},
		{"plus", `+1`, "$", 0, "a value"},
		{"NaN", `NaN`, "$", 0, "a value"},
		{"word", `nul`, "$", 0, "a value"},
		{"no end", `"abc`, "$", 0, "without its end"},
		{"no end behind escape", `"abc\`, "$", 4, "without its end"},
		{"unknown escape", `"\x"`, "$", 1, "escape"},
		{"short \\u", `"\u12"`, "$", 1, "four"},
		{"signed \\u", `"\u+123"`, "$", 1, "four"},
		{"comma at the end", `{"strange key":{"a":1,}}`, `$["strange key"]`, 22, "a key"},
		{"no colon", `{"a" 1}`, "$.a", 5, "':'"},
		{"no comma", `[1 2]`, "$[0]", 3, "',' or ']'"},
		{"open", `{"a":1`, "$.a", 6, "',' or '}'"},
		{"digits", strings.Repeat("9", canonical.MaxDigits+1), "$", 0, "1000 digits"},
		{"large", `1e1001`, "$", 0, "10^±1000"},
		{"small", `[0.1e-1000]`, "$[0]", 1, "10^±1000"},
		{"huge exponent", `1e99999999999999999999`, "$", 0, "10^±1000"},
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
