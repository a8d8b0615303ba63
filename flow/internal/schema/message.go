package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// What messages show of values and names.
const (
	maxMessage = 300 // bytes
	maxShown   = 64  // bytes of a value or a name
	maxListed  = 10  // values or names
)

// cut shortens a text to whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// quote shows a text.
func quote(s string) string {
	s = strconv.Quote(cut(s, maxShown))
	s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(s, `'`, `\'`) + "'"
}

func quoteAll(list []string) string {
	quoted := make([]string, 0, maxListed+1)
	for i, s := range list {
		if i == maxListed {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, quote(s))
	}
	return strings.Join(quoted, ", ")
}

// shown shows a value.
func shown(form string) string {
	switch form[0] {
	case '"':
		return quote(canonical.Unquote([]byte(form)))
	case '{', '[':
		return "value"
	}
	return cut(form, maxShown)
}

func lack(missing []string) string {
	if len(missing) == 1 {
		return "missing property " + quote(missing[0])
	}
	return "missing properties " + quoteAll(missing)
}

func (f *fixed) message() string {
	if c := f.form[0]; c == '{' || c == '[' {
		return "'const' failed"
	}
	return "value must be " + shown(f.form)
}

func (e *enum) message() string {
	switch {
	case e.nested:
		return "'enum' failed"
	case len(e.first) == 1 && e.more == 0:
		return "value must be " + shown(e.first[0])
	}
	wanted := make([]string, len(e.first))
	for i, form := range e.first {
		wanted[i] = shown(form)
	}
	text := "value must be one of " + strings.Join(wanted, ", ")
	if e.more > 0 {
		text += ", …"
	}
	return text
}
