package wire

import (
	"strings"
	"unicode/utf8"
)

// CutText makes s valid as an error's message or stack: UTF-8 without U+0000, at most
// MaxText bytes. A shortened text ends with "…".
func CutText(s string) string {
	const mark = "…"
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.Contains(s, "\x00") {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if len(s) <= MaxText {
		return s
	}
	end := MaxText - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
