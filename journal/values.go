package journal

import (
	"encoding/hex"
	"strconv"

	"github.com/quipu-journal/quipu/canonical"
)

// The values of fields: each function writes one, or reads one.

// text is any string.
func text[S ~string](c *codec, p *S) {
	if c.mode == reading {
		*p = S(c.in.Text())
	} else {
		c.out = canonical.AppendString(c.out, string(*p))
	}
}

// word is a string that most entries have, so that reading it costs no allocation.
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

// big is a 64-bit value, as a string: numbers end at 2^53−1.
func big(c *codec, p *int64) {
	if c.mode == writing {
		c.out = append(strconv.AppendInt(append(c.out, '"'), *p, 10), '"')
		return
	}
	var err error
	*p, err = strconv.ParseInt(string(c.in.Text()), 10, 64)
	c.hold(err)
}

// truth is 1; what is not true is left out.
func truth(c *codec, p *bool) {
	if c.mode == writing {
		c.out = append(c.out, '1')
	} else {
		*p = c.in.Int() == 1
	}
}

func uuid[ID ~[16]byte](c *codec, p *ID) {
	if c.mode == writing {
		c.out = append(appendUUID(append(c.out, '"'), *p), '"')
		return
	}
	id, err := parseUUID(c.in.Text())
	*p = id
	c.hold(err)
}

func digest(c *codec, p *Digest) {
	if c.mode == writing {
		c.out = append(hex.AppendEncode(append(c.out, '"'), p[:]), '"')
		return
	}
	var err error
	*p, err = parseDigest(c.in.Text())
	c.hold(err)
}

func ledger(c *codec, p *Ledger) {
	if c.mode == writing {
		c.out = append(p.append(append(c.out, '"')), '"')
		return
	}
	var err error
	*p, err = parseLedger(c.in.Text())
	c.hold(err)
}

// hold refuses a text that could not be parsed.
func (c *codec) hold(err error) {
	if err != nil {
		c.fail(ErrNotCanonical, err.Error())
	}
}

// vocabulary holds the words that stand in most entries.
var vocabulary = words(
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
