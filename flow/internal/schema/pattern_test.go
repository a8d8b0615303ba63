package schema

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzPattern: a pattern matches what package regexp matches, in steps that are bounded.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{`^(a+)+$`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"},
		{`\bword\b`, "a word."},
		{`(?im)^x$`, "a\nX\nb"},
		{`[^a]é|\pL{2,3}`, "éa"},
		{``, ""},
		{`(a|b*)*c?$`, "abab"},
		{`a{2,5}?b`, "aaab"},
		{`(?s).\z`, "\n"},
		{`\B`, "aa"},
		{`(?i)ſ|K`, "Sk"},
		{`^^a$$`, "a"},
		{`x|^`, "y"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		theirs, err := regexp.Compile(pattern)
		ours, failed := (&patterns{}).compile(pattern)
		if err != nil || !utf8.ValidString(text) {
			require.Equal(t, err != nil, failed != nil)
			return
		}
		if failed != nil {
			require.True(t, len(pattern) > MaxPattern || errors.Is(failed, errPatternSize), "%v", failed)
			return
		}
		var steps int64
		matches := (&machine{}).matches(ours, text, func(n int64) bool { steps += n; return true })
		require.Equal(t, theirs.MatchString(text), matches)
		require.LessOrEqual(t, steps, int64(len(text)+1)*int64(5*len(ours.code)+2))
	})
}

// What patterns take at compile time is bounded, before they are written out, and for all together.
func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`"pattern":"(` + strings.Repeat("abcdefghij", 20) + `){1000}"`,
		`"pattern":"((a{30}){30}b{100}){1}((a{30}){30}b{100}){1}` + strings.Repeat("(c{1000})", 120) + `"`,
		`"pattern":"` + strings.Repeat(`\\pL`, 2_000) + `"`,
		`"properties":{` + rep(400, ",", `"p#i":{"pattern":"[a-z]{#i}x{300}"}`) + `}`,
		`"patternProperties":{` + rep(400, ",", `"[a-z]{#i}x{300}":{}`) + `}`,
		`"$schema":"http://json-schema.org/draft-07/schema#","properties":{` + rep(400, ",", `"p#i":{"pattern":"[\\pL\\pL\\pL]{3}[a-z]{#i}x{300}"}`) + `}`,
	} {
		_, err := Compile(canonically(t, "{"+text+"}"))
		require.ErrorContains(t, err, errPatternSize.Error())
	}
	_, err := Compile(canonically(t, `{"pattern":"`+strings.Repeat("a", MaxPattern+1)+`"}`))
	require.ErrorContains(t, err, "at most 8192 bytes")
	_, err = Compile(canonically(t, `{"properties":{`+rep(500, ",", `"p#i":{"pattern":"^[\\pL '-]{1,200}$"}`)+`}}`))
	require.NoError(t, err, "the same pattern counts once")
}
