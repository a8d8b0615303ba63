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
		w.element().open().text("a", d.Activity).text("d", d.DAD).guid("g", d.GUID).
			text("k", string(d.Kind)).text("t", d.Topic).close()
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
		w.key(k).open().count("c", int64(r.Code)).failure("e", r.Error).text("k", string(r.Kind)).
			payload("o", r.Output).guid("q", r.Request).digest("r", r.Ref).big("ra", r.RetryAfter).
			count("tn", int64(r.Turn)).count("ty", int64(r.Try)).close()
	}
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
	w.key(k).open().text("c", e.Class).failure("e", e.Error).big("f", e.Fence).digest("k", e.Key)
	if e.Late {
		w.count("l", 1)
	}
	w.count("n", int64(e.N)).text("nm", e.Name).payload("r", e.Result).count("tn", int64(e.Turn)).close()
}
