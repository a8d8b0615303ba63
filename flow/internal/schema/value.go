package schema

import (
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// value is a part of a document. Its members or items stand one after another.
type value struct {
	from, to            uint32 // its text
	keyFrom, keyTo      uint32 // the text of its key, with the quotes
	first, count        uint32 // its members or items
	kind                kind
	escaped, keyEscaped bool // there are escapes in the string, in the key
}

// document is a canonical text, taken apart.
type document struct {
	text   string
	values []value
}

// ref names a value of a document, or the key of a member: ^ref of the member.
type ref int32

// read takes a canonical text apart. It does not check the text.
func read(text string) (document, ref) {
	most := 1 + strings.Count(text, ",") + strings.Count(text, "[") + strings.Count(text, "{")
	r := reader{document: document{text: text, values: make([]value, 0, min(most, len(text)/2+1))}}
	r.value(value{})
	r.values = append(r.values, r.open...)
	return r.document, ref(len(r.values) - 1)
}

type reader struct {
	document
	at   int
	open []value // members and items of what is not closed yet
}

// value reads the value at the current place; v has its key.
func (r *reader) value(v value) {
	v.from = uint32(r.at)
	switch c := r.text[r.at]; c {
	case '{', '[':
		r.container(&v, c)
	case '"':
		v.kind = text
		v.escaped = r.quoted()
	default:
		switch c {
		case 'n':
			v.kind = null
		case 't', 'f':
			v.kind = boolean
		default:
			v.kind = number
		}
		for r.at < len(r.text) && r.text[r.at] != ',' && r.text[r.at] != '}' && r.text[r.at] != ']' {
			r.at++
		}
	}
	v.to = uint32(r.at)
	r.open = append(r.open, v)
}

func (r *reader) container(v *value, bracket byte) {
	v.kind = list
	if bracket == '{' {
		v.kind = object
	}
	mark := len(r.open)
	for r.at++; r.text[r.at] != bracket+2; { // '{' and '}', '[' and ']'
		var member value
		if r.text[r.at] == ',' {
			r.at++
		}
		if v.kind == object {
			member.keyFrom = uint32(r.at)
			member.keyEscaped = r.quoted()
			member.keyTo = uint32(r.at)
			r.at++
		}
		r.value(member)
	}
	r.at++
	v.first, v.count = uint32(len(r.values)), uint32(len(r.open)-mark)
	r.values = append(r.values, r.open[mark:]...)
	r.open = r.open[:mark]
}

// quoted reads a string and reports whether it has escapes.
func (r *reader) quoted() (escaped bool) {
	r.at++
	for quote := -1; ; escaped = true {
		if quote < r.at {
			quote = r.at + strings.IndexByte(r.text[r.at:], '"')
		}
		slash := strings.IndexByte(r.text[r.at:quote], '\\')
		if slash < 0 {
			r.at = quote + 1
			return escaped
		}
		r.at += slash + 2
	}
}

// kind is the kind of a value; a key is a string.
func (d *document) kind(v ref) kind {
	if v < 0 {
		return text
	}
	return d.values[v].kind
}

// form is the canonical text of a value.
func (d *document) form(v ref) string {
	if v < 0 {
		return d.text[d.values[^v].keyFrom:d.values[^v].keyTo]
	}
	return d.text[d.values[v].from:d.values[v].to]
}

// string is the content of a string.
func (d *document) string(v ref) string {
	form := d.form(v)
	if v >= 0 && d.values[v].escaped || v < 0 && d.values[^v].keyEscaped {
		return canonical.Unquote([]byte(form))
	}
	return form[1 : len(form)-1]
}

// key is the name of a member.
func (d *document) key(v ref) string { return d.string(^v) }

// member finds a member of an object, whose keys are sorted.
func (d *document) member(v *value, name string) bool {
	low, high := v.first, v.first+v.count
	for low < high {
		middle := (low + high) / 2
		switch key := d.key(ref(middle)); {
		case key == name:
			return true
		case key < name:
			low = middle + 1
		default:
			high = middle
		}
	}
	return false
}
