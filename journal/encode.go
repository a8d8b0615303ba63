package journal

import (
	"strconv"

	"github.com/quipu-journal/quipu/canonical"
)

// Encode returns the entry's body: strict canonical JSON, the only spelling of
// the entry (2.2). Payload fields must be canonical already.
func Encode(e *Entry) []byte { return AppendEntry(make([]byte, 0, 768), e) }

// AppendEntry appends the entry's body to dst. Members stand in the order of
// their keys.
func AppendEntry(dst []byte, e *Entry) []byte {
	w := writer{b: dst}
	w.open()
	w.count("ab", int64(e.Abandoned))
	w.text("act", e.Activity)
	if e.Writer != "" || e.Build != "" {
		w.key("by").open().text("b", e.Build).text("w", e.Writer).close()
	}
	w.guid("ch", e.Chain)
	w.closing("cl", e.Close)
	w.guids("da", e.Disarmed)
	w.text("dad", e.DAD)
	w.dispatched("dis", e.Dispatched)
	w.trouble("dl", e.Trouble)
	w.effect("eff", e.Effect)
	if x := e.Elements; x != nil {
		w.key("el").list().int(int64(x.Count)).int(int64(x.Parallel)).end()
	}
	w.guids("end", e.Ended)
	w.flow("fl", e.Flow)
	w.guids("fo", e.Folded)
	w.guid("g", e.GUID)
	w.count("gen", e.Generation)
	w.bound("hd", e.Bound)
	w.payload("in", e.Input)
	w.key("job").uuid(e.Job)
	w.text("k", string(e.Kind))
	w.text("key", e.Key)
	w.ledgers("led", e.Ledgers)
	w.count("leg", int64(e.Leg))
	w.marks("m", e.Marks)
	if e.Operator != nil {
		w.key("op").open().text("a", e.Operator.Action).text("r", e.Operator.Reason).text("w", e.Operator.Who).close()
	}
	if e.Open != nil {
		w.key("opn").list().int(int64(e.Open.Before)).int(int64(e.Open.After)).end()
	}
	w.parent("pa", e.Parent)
	w.receipts("rc", e.Receipts)
	w.response("rs", e.Response)
	w.result("rt", e.Result)
	if e.Semaphore != nil {
		w.key("sem").list().int(e.Semaphore.Before).int(e.Semaphore.After).end()
	}
	w.count("seq", e.Seq)
	w.text("sp", e.Space)
	w.big("t", e.Time)
	w.text("tr", e.Trace)
	w.updated("up", e.Updated)
	w.key("v").int(Version)
	w.guids("wd", e.Withdrawn)
	w.waits("wt", e.Waits)
	w.close()
	return w.b
}

// writer appends JSON; sep says that the next member or element needs a comma.
type writer struct {
	b   []byte
	sep bool
}

func (w *writer) comma() {
	if w.sep {
		w.b = append(w.b, ',')
	}
	w.sep = true
}

func (w *writer) bracket(c byte) *writer { w.b = append(w.b, c); w.sep = false; return w }
func (w *writer) unbracket(c byte)       { w.b = append(w.b, c); w.sep = true }
func (w *writer) open() *writer          { return w.bracket('{') }
func (w *writer) close()                 { w.unbracket('}') }
func (w *writer) list() *writer          { return w.bracket('[') }
func (w *writer) end()                   { w.unbracket(']') }

// key writes a member's key; what follows is its value, without a comma.
func (w *writer) key(k string) *writer {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, k...)
	w.b = append(w.b, '"', ':')
	w.sep = false
	return w
}

func (w *writer) str(s string) *writer {
	w.comma()
	w.b = canonical.AppendString(w.b, s)
	return w
}

func (w *writer) int(n int64) *writer {
	w.comma()
	w.b = strconv.AppendInt(w.b, n, 10)
	return w
}

func (w *writer) uuid(id [16]byte) *writer {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(appendUUID(w.b, id), '"')
	return w
}

func (w *writer) ledger(l Ledger) *writer {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(l.append(w.b), '"')
	return w
}

// The members below leave out what is zero.

func (w *writer) text(k, s string) *writer {
	if s != "" {
		w.key(k).str(s)
	}
	return w
}

func (w *writer) count(k string, n int64) *writer {
	if n != 0 {
		w.key(k).int(n)
	}
	return w
}

// big writes a 64-bit value as a string: strict numbers end at 2^53−1.
func (w *writer) big(k string, n int64) *writer {
	if n != 0 {
		w.key(k).str(strconv.FormatInt(n, 10))
	}
	return w
}

func (w *writer) truth(k string, is bool) *writer {
	if is {
		w.key(k).int(1)
	}
	return w
}

func (w *writer) guid(k string, g GUID) *writer {
	if !g.IsZero() {
		w.key(k).uuid(g)
	}
	return w
}

func (w *writer) digest(k string, d Digest) *writer {
	if !d.IsZero() {
		w.key(k).str(d.String())
	}
	return w
}

func (w *writer) payload(k string, p []byte) *writer {
	if p != nil {
		w.key(k)
		w.b = append(w.b, p...)
		w.sep = true
	}
	return w
}

func (w *writer) guids(k string, gs []GUID) {
	if len(gs) == 0 {
		return
	}
	w.key(k).list()
	for _, g := range gs {
		w.uuid(g)
	}
	w.end()
}

func (w *writer) element() *writer { w.comma(); return w }
