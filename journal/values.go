package journal

import (
	"encoding/base64"
	"strconv"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// The values of fields: each function writes one value, or reads one.

// text is any string.
func text[S ~string](c *codec, p *S) {
	if c.mode == reading {
		*p = S(c.in.Text())
	} else {
		c.out = canonical.AppendString(c.out, string(*p))
	}
}

// word is a string that is often one of vocabulary, which is read without an allocation.
func word[S ~string](c *codec, p *S) {
	if c.mode == writing {
		text(c, p)
		return
	}
	b := c.in.Text()
	if s, ok := vocabulary[string(b)]; ok {
		*p = S(s)
	} else {
		*p = S(b)
	}
}

func number[N int | int64](c *codec, p *N) {
	if c.mode == writing {
		c.out = strconv.AppendInt(c.out, int64(*p), 10)
		return
	}
	n := c.in.Int()
	if *p = N(n); n > canonical.MaxInt || n < -canonical.MaxInt {
		c.fail(ErrNotCanonical, "an integer beyond 2^53−1")
	}
}

// big is a 64-bit value, written as a string: JSON numbers end at 2^53−1.
func big(c *codec, p *int64) {
	if c.mode == writing {
		c.out = append(strconv.AppendInt(append(c.out, '"'), *p, 10), '"')
		return
	}
	var err error
	*p, err = strconv.ParseInt(string(c.in.Text()), 10, 64)
	c.hold(err)
}

// truth is 1; false is left out.
func truth(c *codec, p *bool) {
	if c.mode == writing {
		c.out = append(c.out, '1')
	} else {
		*p = c.in.Int() == 1
	}
}

// uuid is an id, or a sum: sixteen bytes.
func uuid[ID ~[16]byte](c *codec, p *ID) {
	b := [16]byte(*p)
	raw(c, b[:])
	*p = b
}

func digest(c *codec, p *Digest) { raw(c, p[:]) }

// base64url spells bytes in the fewest characters that JSON needs not escape.
var base64url = base64.RawURLEncoding.Strict()

// raw is a fixed number of bytes.
func raw(c *codec, p []byte) {
	if c.mode == writing {
		c.out = append(base64url.AppendEncode(append(c.out, '"'), p), '"')
		return
	}
	text := c.in.Text()
	if len(text) != base64url.EncodedLen(len(p)) {
		c.fail(ErrNotCanonical, "bytes of another length")
		return
	}
	if n, err := base64url.Decode(p, text); err != nil || n != len(p) {
		c.fail(ErrNotCanonical, "no base64url")
	}
}

// sums are one text, since their number varies.
func sums(c *codec, p *Sums) {
	if c.mode == writing {
		c.out = append(base64url.AppendEncode(append(c.out, '"'), *p), '"')
		return
	}
	var err error
	if *p, err = base64url.AppendDecode(nil, c.in.Text()); err != nil || len(*p)%len(Sum{}) != 0 {
		c.fail(ErrNotCanonical, "no base64url of sums")
	}
}

func ledger(c *codec, p *Ledger) {
	if c.mode == writing {
		c.out = append(p.append(append(c.out, '"')), '"')
		return
	}
	var err error
	*p, err = ParseLedger(c.in.Text())
	c.hold(err)
}

// folded is the ledger of an activity whose Leg1 is folded; 1 stands for ledgerSent, the usual
// one.
func folded(c *codec, p *Ledger) {
	switch {
	case c.mode == writing && *p == ledgerSent:
		c.out = append(c.out, '1')
	case c.mode == reading && c.in.Peek() == '1':
		if *p = ledgerSent; c.in.Int() != 1 {
			c.fail(ErrNotCanonical, "no ledger of a folded Leg1")
		}
	default:
		ledger(c, p)
	}
}

// kind is the kind of an entry, by its code. An unknown code is read as "?" and the code.
func kind(c *codec, p *Kind) {
	if c.mode == writing {
		code, ok := kindCodes[*p]
		if !ok {
			code = string(*p)
		}
		text(c, &code)
		return
	}
	code := c.in.Text()
	k, ok := kindsOf[string(code)]
	if !ok {
		k = Kind("?" + string(code)) // it is no known kind, even if the code is a kind's full name
	}
	*p = k
}

// kindCodes are the codes of the kinds of entries in bodies.
var kindCodes = map[Kind]string{
	KindCreated: "c", KindLeg1: "1", KindLeg2: "2", KindStale: "s", KindSignal: "sg", KindInterrupt: "i",
	KindEffectStarted: "es", KindEffectCompleted: "ec", KindEffectFailed: "ef",
	KindDeadLetter: "dl", KindOperator: "op", KindQuarantine: "q", KindExpired: "x", KindResumed: "rs", KindForked: "fk", KindOverdue: "ov",
}

var kindsOf = func() map[string]Kind {
	kinds := make(map[string]Kind, len(kindCodes))
	for k, code := range kindCodes {
		kinds[code] = k
	}
	return kinds
}()

// marked is a member with marks, one letter each; it is left out if there are none. A mark
// without a letter is written in full, and no reader knows it.
func marked(c *codec, key string, p *[]Mark) {
	if !c.member(key, len(*p) > 0) {
		return
	}
	if c.mode == writing {
		letters := make([]byte, 0, 8)
		for _, m := range *p {
			if x, ok := markLetters[m]; ok {
				letters = append(letters, x)
			} else {
				letters = append(letters, m...)
			}
		}
		c.out = canonical.AppendString(c.out, string(letters))
	} else {
		letters := c.in.Text()
		*p = make([]Mark, 0, len(letters))
		for _, x := range letters {
			if marksOf[x] == "" {
				c.fail(ErrUnknownField, "an unknown mark")
			}
			*p = append(*p, marksOf[x])
		}
	}
	c.next()
}

var markLetters = map[Mark]byte{
	MarkEntered: 'e', MarkWork: 'w', MarkChildren: 'c', MarkClosed: 's', MarkTasks: 't', MarkAfterClose: 'a',
}

var marksOf = func() (marks [256]Mark) {
	for m, x := range markLetters {
		marks[x] = m
	}
	return marks
}()

// hold refuses a text that could not be parsed.
func (c *codec) hold(err error) {
	if err != nil {
		c.fail(ErrNotCanonical, err.Error())
	}
}

// vocabulary has the words that most entries use.
var vocabulary = words(
	",0", ",0,0", ",0,0,0",
	string(MessageStart), string(MessageLeg1), string(MessageRequest), string(MessageAnswer), string(MessageWakeUp),
	string(MessageOutcome),
	string(MessageCycle), string(MessageSignal), string(MessageInterrupt), string(ByTimer),
	string(ResponseTerminal), string(ResponsePass), string(ResponseFailedAttempt), string(JobCompleted),
	string(ResponseSuspended), string(ResponseWake), string(PauseSleep), string(PauseSignal), string(PauseChild),
)

func words(list ...string) map[string]string {
	m := make(map[string]string, len(list))
	for _, w := range list {
		m[w] = w
	}
	return m
}
