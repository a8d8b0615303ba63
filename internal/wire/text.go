package wire

import (
	"strings"
	"unicode/utf8"
)

// CutText makes s valid as an error's message or stack: UTF-8 without U+0000, at most
// MaxText bytes. A shortened text ends with "…".
func CutText(s string) string { return CutTextTo(s, MaxText) }

// CutTextTo is CutText for a text of at most size bytes, which is at least 3.
func CutTextTo(s string, size int) string {
	const mark = "…"
	cut := len(s) > 4*size
	if cut { // what is cut off is not worth looking at: a text of a user may have 100 MB
		s = s[:4*size]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.Contains(s, "\x00") {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if !cut && len(s) <= size {
		return s
	}
	if len(s) <= size-len(mark) {
		return s + mark
	}
	end := size - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
