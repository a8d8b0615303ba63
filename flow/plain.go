package flow

import (
	"regexp"
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
)

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// otherNumber is what a YAML reader of version 1.1 or 1.2 takes for a number, and JSON does not:
	// +1, 010, 0x1F, 0b1, 1_000, .5, 5., .inf, .nan.
	otherNumber = regexp.MustCompile(
		`^[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
	// otherWord is what a YAML reader of version 1.2 takes for null or a boolean, and JSON does not.
	otherWord = regexp.MustCompile(`^(~|Null|NULL|True|TRUE|False|FALSE)$`)
)

// plain says what an unquoted text of YAML means: what it means as a JSON value if it is one, no
// text is null, and any other is itself. What some readers of YAML take for a number, a boolean or
// null, and JSON does not know, is refused with a reason. The words yes, no, on and off are texts,
// as in YAML 1.2, and so are times and dates.
func plain(text string) (k kind, value, refused string) {
	switch {
	case text == "" || text == "null":
		return kindNull, "null", ""
	case text == "true" || text == "false":
		return kindBool, text, ""
	case otherWord.MatchString(text):
		return kindString, text, "write null, true or false as in JSON; quote it if it is a string"
	case strings.Contains(text, byteOrderMark):
		return kindString, text, "a byte-order mark (U+FEFF) within the text: remove it"
	case strings.IndexByte("+-.0123456789", text[0]) < 0:
		return kindString, text, ""
	case jsonNumber.MatchString(text):
		number, err := canonical.Payload([]byte(text))
		if refusal, ok := err.(*canonical.Error); ok {
			return kindNumber, "0", refusal.Reason + "; quote it if it is a string"
		}
		return kindNumber, string(number), ""
	case otherNumber.MatchString(text):
		return kindString, text, "a number is written as in JSON: 12, -0.5, 1e6; quote it if it is a string"
	}
	return kindString, text, ""
}
