package expr

import "strings"

// End is the offset of the brace that closes the expression that begins at from; −1 without one.
// Braces in strings and comments, and those of maps, do not close it.
func End(text string, from int) int {
	depth := 0
	for from < len(text) {
		end, opaque := tokenEnd(text, from)
		switch {
		case opaque:
		case text[from] == '{':
			depth++
		case text[from] == '}':
			if depth--; depth < 0 {
				return from
			}
		}
		from = end
	}
	return -1
}

// Code is an expression with spaces instead of what is in its strings and comments, so that what is
// left means what it says. Offsets stay the same.
func Code(text string) string {
	code := []byte(text)
	for from := 0; from < len(text); {
		end, opaque := tokenEnd(text, from)
		for i := from; opaque && i < end; i++ {
			if code[i] != '"' && code[i] != '\'' || i > from && i < end-1 || text[from] == '/' {
				code[i] = ' '
			}
		}
		from = end
	}
	return string(code)
}

// tokenEnd is the end of the token at from by the grammar of CEL (CEL.g4, Lexer Rules); opaque says
// that it is a string, a comment or a quoted name. What is no token is one character.
func tokenEnd(text string, from int) (end int, opaque bool) {
	switch c := text[from]; {
	case c == '/' && strings.HasPrefix(text[from:], "//"):
		if line := strings.IndexByte(text[from:], '\n'); line >= 0 {
			return from + line, true
		}
		return len(text), true
	case c == '"' || c == '\'':
		return stringEnd(text, from, false), true
	case c == '`':
		if end = from + 1 + leading(text[from+1:], func(c byte) bool {
			return isWord(c) || strings.IndexByte(".-/ ", c) >= 0
		}); end > from+1 &&
			end < len(text) && text[end] == '`' {
			return end + 1, true
		}
	case isDigit(c) || c == '.' && from+1 < len(text) && isDigit(text[from+1]):
		return from + numberLength(text[from:]), false
	case isWord(c):
		end = from + leading(text[from:], isWord)
		if end == len(text) || text[end] != '"' && text[end] != '\'' {
			return end, false
		}
		switch text[from:end] {
		case "b", "B":
			return stringEnd(text, end, false), true
		case "r", "R", "br", "bR", "Br", "BR":
			return stringEnd(text, end, true), true
		}
		return end, false
	}
	return from + 1, false
}

// stringEnd is the end of the string whose first quote is at from. A quote without a second one in
// its line is a character.
func stringEnd(text string, from int, raw bool) int {
	quote := text[from : from+1]
	if strings.HasPrefix(text[from:], strings.Repeat(quote, 3)) {
		if end := closing(text, from+3, strings.Repeat(quote, 3), "", raw); end >= 0 {
			return end
		}
	}
	if end := closing(text, from+1, quote, "\r\n", raw); end >= 0 {
		return end
	}
	return from + 1
}

// closing finds the end of the quotes that close a string; −1 if one of the characters before comes
// first.
func closing(text string, from int, quotes, before string, raw bool) int {
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(text[i:], quotes):
			return i + len(quotes)
		case strings.IndexByte(before, text[i]) >= 0:
			return -1
		}
	}
	return -1
}

// numberLength is the length of the number at the start of a text.
func numberLength(text string) int {
	suffixed := func(n int) int {
		if n < len(text) && text[n]|0x20 == 'u' {
			return n + 1
		}
		return n
	}
	if strings.HasPrefix(text, "0x") {
		isHex := func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
		if hex := leading(text[2:], isHex); hex > 0 {
			return suffixed(2 + hex)
		}
	}
	n := leading(text, isDigit)
	whole := n
	if n < len(text) && text[n] == '.' {
		if fraction := leading(text[n+1:], isDigit); fraction > 0 {
			n += 1 + fraction
		}
	}
	if n < len(text) && text[n]|0x20 == 'e' {
		power := n + 1
		if power < len(text) && (text[power] == '+' || text[power] == '-') {
			power++
		}
		if digits := leading(text[power:], isDigit); digits > 0 {
			return power + digits
		}
	}
	if n == whole {
		return suffixed(n)
	}
	return n
}

// leading is the length of the longest start of a text whose bytes all fit.
func leading(text string, fits func(byte) bool) (n int) {
	for n < len(text) && fits(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return isDigit(c) || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
