package journal

func (w *writer) marks(k string, ms []Mark) {
	if len(ms) == 0 {
		return
	}
	w.key(k).list()
	for _, m := range ms {
		w.str(string(m))
	}
	w.end()
}

func (w *writer) ledgers(k string, ms []LedgerMove) {
	if len(ms) == 0 {
		return
	}
	w.key(k).list()
	for _, m := range ms {
		w.element().list().str(m.Activity).str(m.DAD).ledger(m.Before).ledger(m.After).end()
	}
	w.end()
}

// receiptNew stands in the place of the ledger before of a created receipt.
const receiptNew = "new"

func (w *writer) receipts(k string, ms []ReceiptMove) {
	if len(ms) == 0 {
		return
	}
	w.key(k).list()
	for _, m := range ms {
		w.element().list().uuid(m.GUID)
		if m.New {
			w.str(receiptNew)
		} else {
			w.ledger(m.Before)
		}
		w.ledger(m.After).str(string(m.Verdict)).end()
	}
	w.end()
}

func (w *writer) dispatched(k string, ds []Dispatched) {
	if len(ds) == 0 {
		return
	}
	w.key(k).list()
	for _, d := range ds {
		w.element().open().text("a", d.Activity).big("at", d.At).text("d", d.DAD).guid("g", d.GUID).
			guid("j", GUID(d.Job)).text("k", string(d.Kind)).text("t", d.Topic).close()
	}
	w.end()
}

func (w *writer) updated(k string, us []Updated) {
	if len(us) == 0 {
		return
	}
	w.key(k).list()
	for _, u := range us {
		w.element().open().guid("g", u.GUID).text("h", u.Held).text("k", string(u.Kind)).
			big("n", u.NextAt).count("tn", int64(u.Turn)).count("ty", int64(u.Try)).close()
	}
	w.end()
}

func (w *writer) failure(k string, f *Failure) *writer {
	if f != nil {
		w.key(k).open().text("c", f.Class).payload("d", f.Data).text("m", f.Message).text("s", f.Stack).close()
	}
	return w
}

func (w *writer) response(k string, r *Response) {
	if r != nil {
		w.key(k).responseBody(r)
	}
}

func (w *writer) responseBody(r *Response) {
	w.open().text("by", string(r.By)).count("c", int64(r.Code)).guid("ch", GUID(r.Child)).failure("e", r.Error).
		count("el", int64(r.Element)).text("k", string(r.Kind)).count("n", int64(r.Number)).
		payload("o", r.Output).pauseRef("of", r.Of).pauses("p", r.Pauses).guid("q", r.Request).
		digest("r", r.Ref).big("ra", r.RetryAfter).guid("sg", r.Signal).
		count("tn", int64(r.Turn)).count("ty", int64(r.Try)).truth("u", r.Undone).close()
}

func (w *writer) pauses(k string, ps []Pause) *writer {
	if len(ps) == 0 {
		return w
	}
	w.key(k).list()
	for i := range ps {
		p := &ps[i]
		w.element().open().big("f", p.For).text("fl", p.Flow).payload("in", p.Input).text("k", string(p.Kind)).
			text("ky", p.Key).text("n", p.Name).text("p", p.Position).text("t", p.Topic).text("v", p.Version).close()
	}
	w.end()
	return w
}

func (w *writer) pauseRef(k string, p *PauseRef) *writer {
	if p != nil {
		w.key(k).open().text("k", string(p.Kind)).text("n", p.Name).text("p", p.Position).close()
	}
	return w
}

// EncodeResponse returns a response by itself, as the body of a dispatch row
// that brings one. Payload fields must be canonical.
func EncodeResponse(r *Response) []byte {
	w := writer{b: make([]byte, 0, 128+len(r.Output))}
	w.responseBody(r)
	return w.b
}

func (w *writer) result(k string, r *Result) {
	if r != nil {
		w.key(k).open().text("by", string(r.By)).count("c", int64(r.Code)).failure("e", r.Error).payload("o", r.Output).close()
	}
}

func (w *writer) parent(k string, p *Parent) {
	if p == nil {
		return
	}
	w.key(k).open().text("a", p.Activity).truth("aw", p.Awaited).text("d", p.DAD).guid("g", p.Leg1).guid("j", GUID(p.Job)).text("s", p.Space).count("tn", int64(p.Turn)).close()
}

func (w *writer) waits(k string, ws []Wait) {
	if len(ws) == 0 {
		return
	}
	w.key(k).list()
	for _, x := range ws {
		w.element().open().guid("g", x.GUID).text("k", x.Key).truth("r", x.Repeat).text("t", x.Topic).close()
	}
	w.end()
}

func (w *writer) closing(k string, c *Close) {
	if c != nil {
		w.key(k).open().count("c", int64(c.Code)).failure("e", c.Error).
			payload("o", c.Output).text("s", string(c.State)).close()
	}
}

func (w *writer) bound(k string, b *Bound) {
	if b != nil {
		w.key(k).open().guid("c", b.Chain).digest("h", b.Head.Hash).count("s", b.Head.Seq).close()
	}
}

func (w *writer) flow(k string, f *FlowRef) {
	if f != nil {
		w.key(k).open().digest("d", f.Digest).text("n", f.Name).text("v", f.Version).close()
	}
}

func (w *writer) trouble(k string, t *Trouble) {
	if t != nil {
		w.key(k).open().text("m", t.Message).text("r", t.Reason).close()
	}
}

func (w *writer) effect(k string, e *Effect) {
	if e == nil {
		return
	}
	w.key(k).open().text("c", e.Class).failure("e", e.Error).big("f", e.Fence).digest("k", e.Key).
		truth("l", e.Late).count("n", int64(e.N)).text("nm", e.Name).text("p", e.Position).payload("r", e.Result).count("tn", int64(e.Turn)).close()
}
