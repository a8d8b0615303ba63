package journal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/canonical"
)

// maxDepth bounds the nesting of a payload while it is skipped.
const maxDepth = 1000

// reader walks one body. The first fault sticks in err and ends every loop, so
// that the callers read straight on.
type reader struct {
	b   []byte
	i   int
	err error
}

func (r *reader) fail(kind error, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s at byte %d", kind, what, r.i)
	}
}

func (r *reader) unknown(k string) {
	r.fail(ErrUnknownField, strconv.Quote(k))
}

func (r *reader) eat(c byte) bool {
	if r.err == nil && r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *reader) want(c byte) {
	if !r.eat(c) {
		r.fail(ErrNotCanonical, "want "+strconv.QuoteRune(rune(c)))
	}
}

// object calls member for each key, in the order of the keys, which must
// ascend; member reads the value.
func (r *reader) object(member func(key string)) {
	r.want('{')
	if r.eat('}') {
		return
	}
	last := ""
	for first := true; r.err == nil; first = false {
		k := r.name()
		r.want(':')
		if !first && k <= last {
			r.fail(ErrNotCanonical, "key "+strconv.Quote(k)+" out of order")
		}
		if r.err != nil {
			return
		}
		last = k
		member(k)
		if r.eat('}') {
			return
		}
		r.want(',')
	}
}

func (r *reader) array(element func()) {
	r.want('[')
	if r.eat(']') {
		return
	}
	for r.err == nil {
		element()
		if r.eat(']') {
			return
		}
		r.want(',')
	}
}

// tuple reads an array of exactly n elements.
func (r *reader) tuple(n int, element func(i int)) {
	i := 0
	r.array(func() {
		if i == n {
			r.fail(ErrNotCanonical, "too many elements")
			return
		}
		element(i)
		i++
	})
	if i != n {
		r.fail(ErrNotCanonical, "too few elements")
	}
}

// texts reads an object whose members are all strings.
func (r *reader) texts(place func(key string) *string) {
	r.object(func(k string) {
		if s := place(k); s != nil {
			*s = r.str()
		} else {
			r.unknown(k)
		}
	})
}

// str reads a string.
func (r *reader) str() string { return string(r.text()) }

// text reads a string without a copy: the bytes are those of the body as long
// as there is no escape in it.
func (r *reader) text() []byte {
	r.want('"')
	if r.err != nil {
		return nil
	}
	start := r.i
	for ; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '"':
			s := r.b[start:r.i]
			r.i++
			return s
		case '\\':
			return []byte(r.escaped(start))
		}
	}
	r.fail(ErrNotCanonical, "string does not end")
	return nil
}

// name reads a string out of a small vocabulary, keys and kinds, so that the
// common ones cost no allocation.
func (r *reader) name() string {
	b := r.text()
	if len(b) == 1 && 'a' <= b[0] && b[0] <= 'z' {
		return letters[b[0]-'a' : b[0]-'a'+1]
	}
	if s, ok := vocabulary[string(b)]; ok {
		return s
	}
	return string(b)
}

const letters = "abcdefghijklmnopqrstuvwxyz"

// vocabulary holds the words that stand in most entries, but for single letters.
var vocabulary = words(
	"ab", "act", "at", "by", "ch", "cl", "da", "dad", "dis", "dl", "eff", "el", "end", "fl",
	"fo", "gen", "hd", "in", "job", "key", "ky", "led", "leg", "nm", "of", "op", "opn",
	"pa", "ra", "rc", "rs", "rt", "sem", "seq", "sg", "sp", "tn", "tr", "ty", "up", "wd", "wt",
	",0", ",0,0", ",0,0,0",
	string(KindCreated), string(KindLeg1), string(KindLeg2), string(KindStale),
	string(KindEffectStarted), string(KindEffectCompleted),
	string(MarkEntered), string(MarkWork), string(MarkChildren), string(MarkClosed), string(MarkTasks),
	string(MessageStart), string(MessageRequest), string(MessageAnswer), string(MessageWakeUp), string(MessageOutcome),
	string(MessageCycle), string(MessageSignal), string(MessageInterrupt), string(ByTimer),
	string(ResponseTerminal), string(ResponsePass), string(ResponseFailedTry), string(VerdictHandled), string(JobCompleted),
	string(ResponseSuspended), string(ResponseWake), string(PauseSleep), string(PauseSignal), string(PauseChild),
)

func words(list ...string) map[string]string {
	m := make(map[string]string, len(list))
	for _, w := range list {
		m[w] = w
	}
	return m
}

func (r *reader) escaped(start int) string {
	for ; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			r.i++
		case '"':
			r.i++
			var s string
			if err := json.Unmarshal(r.b[start-1:r.i], &s); err != nil {
				r.fail(ErrNotCanonical, "string: "+err.Error())
			}
			if strings.IndexByte(s, 0) >= 0 {
				r.fail(ErrNotCanonical, "U+0000 in a string")
			}
			return s
		}
	}
	r.fail(ErrNotCanonical, "string does not end")
	return ""
}

func (r *reader) int() int64 {
	start := r.i
	r.eat('-')
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	n := r.number(r.b[start:r.i])
	if n > canonical.MaxStrictInt || n < -canonical.MaxStrictInt {
		r.fail(ErrNotCanonical, "integer beyond 2^53-1")
	}
	return n
}

// big reads a 64-bit value that stands as a string.
func (r *reader) big() int64 { return r.number(r.text()) }

func (r *reader) number(s []byte) int64 {
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		r.fail(ErrNotCanonical, "want an integer")
	}
	return n
}

func (r *reader) guid() GUID {
	g, err := parseUUID(r.text())
	if err != nil && r.err == nil {
		r.fail(ErrNotCanonical, err.Error())
	}
	return g
}

func (r *reader) digest() Digest {
	d, err := parseDigest(r.text())
	if err != nil && r.err == nil {
		r.fail(ErrNotCanonical, err.Error())
	}
	return d
}

func (r *reader) ledger() Ledger { return r.parseLedger(r.text()) }

func (r *reader) parseLedger(s []byte) Ledger {
	l, err := parseLedger(s)
	if err != nil && r.err == nil {
		r.fail(ErrNotCanonical, err.Error())
	}
	return l
}

// raw returns the bytes of one value without looking into it; Decode checks
// that they are a canonical payload.
func (r *reader) raw() []byte {
	start, depth := r.i, 0
	for r.err == nil && r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case '"':
			r.skipString()
			if depth == 0 {
				return r.b[start:r.i]
			}
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				r.fail(ErrNotCanonical, "payload nests too deeply")
			}
		case '}', ']', ',':
			if depth == 0 {
				return r.scalar(start)
			}
			if c != ',' {
				if depth--; depth == 0 {
					r.i++
					return r.b[start:r.i]
				}
			}
		}
		r.i++
	}
	return r.scalar(start)
}

func (r *reader) scalar(start int) []byte {
	if r.i == start {
		r.fail(ErrNotCanonical, "want a value")
	}
	return r.b[start:r.i]
}

func (r *reader) skipString() {
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			r.i++
		case '"':
			r.i++
			return
		}
	}
	r.fail(ErrNotCanonical, "string does not end")
}
