package house

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unwanted are words that have no place in the repository, in code, comments or
// documents. They are put together here so that this file, too, is free of them.
var unwanted = []struct {
	why   string
	stems []string // one of them is in each of the words, in small letters
	word  *regexp.Regexp
}{
	{"do it, or leave it out", []string{"to" + "do", "fix" + "me", "x" + "xx", "ha" + "ck"}, words("TO"+"DO", "FIX"+"ME", "X"+"XX", "HA"+"CK")},
	{
		"a path of one machine: take it from the environment or a flag",
		[]string{"/work/", "/ho" + "me/", "/us" + "ers/", "/ro" + "ot/"},
		regexp.MustCompile(`(^|[^\w./-])/(work|ho` + `me|Us` + `ers|ro` + `ot)/[\w.]`),
	},
	{
		"say it for a reader who has only this repository",
		[]string{
			"iss" + "ue", "subag" + "ent", "sub-ag" + "ent", "language mod" + "el", "chatb" + "ot", "ll" + "m",
			"pro" + "mpt engineering", "co" + "pilot", "as an a" + "i",
		},
		regexp.MustCompile(`(?i)\b(iss` + `ue #?\d+|sub-?ag` + `ents?|language mod` + `els?|ch` + `atbots?|ll` + `ms?|pro` + `mpt engineering|co` + `pilot|as an a` + `i)\b`),
	},
	{
		"the field has a word for it: dispatch row, dead letter, resolve, cancel, operator action, attempt, caller's transaction",
		[]string{"lice" + "nce", "und" + "ead", "unw" + "ait", "dis" + "arm", "de" + "eds", "christ" + "en", "tom" + "bs"},
		regexp.MustCompile(`(?i)\b(lice` + `nces?|und` + `ead|unw` + `aits?|dis` + `arm(s|ed)?|de` + `eds|christ` + `ens?|tom` + `bs)\b`),
	},
}

func words(list ...string) *regexp.Regexp {
	return regexp.MustCompile(`\b(` + strings.Join(list, "|") + `)\b`)
}

// found are the unwanted words of a text.
func found(name string, content []byte) (broken []string) {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil // no text
	}
	small, suspects := bytes.ToLower(content), unwanted[:0:0]
	for _, u := range unwanted { // the expressions take long, and few files have what they begin with
		if slices.ContainsFunc(u.stems, func(stem string) bool { return bytes.Contains(small, []byte(stem)) }) {
			suspects = append(suspects, u)
		}
	}
	number := 0
	for line := range bytes.Lines(content) {
		if number++; len(suspects) == 0 {
			break
		}
		for _, u := range suspects {
			if hit := u.word.Find(line); hit != nil {
				broken = append(broken, fmt.Sprintf("%s:%d: %q: %s", name, number, bytes.TrimSpace(hit), u.why))
			}
		}
	}
	return broken
}

func TestUnwantedWords(t *testing.T) {
	t.Parallel()
	var broken []string
	walk(t, func(name string, content []byte) { broken = append(broken, found(name, content)...) })
	none(t, broken, "words that have no place in the repository")
}

func TestWordRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"// TO" + "DO: later", "see /ho" + "me/somebody/x", "cd /wo" + "rk/main", "of iss" + "ue 7", "an LL" + "M wrote it",
	} {
		require.Len(t, found("x", []byte(text)), 1, text)
	}
	for _, text := range []string{"a session is one committer", "mastodon", "https://example.com/home/page", "work/main", "issue an entry"} {
		require.Empty(t, found("x", []byte(text)), text)
	}
}
