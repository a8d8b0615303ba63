package journal

import (
	"bytes"
	"fmt"
)

// pick returns the place that the key names, nil for another key.
func pick(k, a string, forA *string, b string, forB *string) *string {
	switch k {
	case a:
		return forA
	case b:
		return forB
	}
	return nil
}

func (r *reader) guids() []GUID {
	var gs []GUID
	r.array(func() { gs = append(gs, r.guid()) })
	return gs
}

func (r *reader) ledgerMove() (m LedgerMove) {
	r.tuple(4, func(i int) {
		switch i {
		case 0:
			m.Activity = r.str()
		case 1:
			m.DAD = r.name()
		case 2:
			m.Before = r.ledger()
		case 3:
			m.After = r.ledger()
		}
	})
	return m
}

func (r *reader) receiptMove() (m ReceiptMove) {
	r.tuple(4, func(i int) {
		switch i {
		case 0:
			m.GUID = r.guid()
		case 1:
			if s := r.text(); string(s) == receiptNew {
				m.New = true
			} else {
				m.Before = r.parseLedger(s)
			}
		case 2:
			m.After = r.ledger()
		case 3:
			m.Verdict = Verdict(r.name())
		}
	})
	return m
}

func (r *reader) dispatched() (d Dispatched) {
	r.object(func(k string) {
		switch k {
		case "a":
			d.Activity = r.str()
		case "at":
			d.At = r.big()
		case "d":
			d.DAD = r.name()
		case "g":
			d.GUID = r.guid()
		case "j":
			d.Job = JobID(r.guid())
		case "k":
			d.Kind = MessageKind(r.name())
		case "t":
			d.Topic = r.str()
		default:
			r.unknown(k)
		}
	})
	return d
}

func (r *reader) updated() (u Updated) {
	r.object(func(k string) {
		switch k {
		case "g":
			u.GUID = r.guid()
		case "h":
			u.Held = r.str()
		case "k":
			u.Kind = MessageKind(r.name())
		case "n":
			u.NextAt = r.big()
		case "tn":
			u.Turn = int(r.int())
		case "ty":
			u.Try = int(r.int())
		default:
			r.unknown(k)
		}
	})
	return u
}

func (r *reader) failure() *Failure {
	f := &Failure{}
	r.object(func(k string) {
		switch k {
		case "c":
			f.Class = r.str()
		case "d":
			f.Data = r.raw()
		case "m":
			f.Message = r.str()
		case "s":
			f.Stack = r.str()
		default:
			r.unknown(k)
		}
	})
	return f
}

func (r *reader) response() *Response {
	s := &Response{}
	r.object(func(k string) {
		if !r.answered(k, s) && !r.woken(k, s) {
			r.unknown(k)
		}
	})
	return s
}

// answered reads the members that every response has.
func (r *reader) answered(k string, s *Response) bool {
	switch k {
	case "c":
		s.Code = int(r.int())
	case "e":
		s.Error = r.failure()
	case "k":
		s.Kind = ResponseKind(r.name())
	case "o":
		s.Output = r.raw()
	case "q":
		s.Request = r.guid()
	case "r":
		s.Ref = r.digest()
	case "ra":
		s.RetryAfter = r.big()
	case "tn":
		s.Turn = int(r.int())
	case "ty":
		s.Try = int(r.int())
	case "u":
		s.Undone = r.int() == 1
	default:
		return false
	}
	return true
}

// woken reads the members of wake-ups, outcomes, elements and suspensions.
func (r *reader) woken(k string, s *Response) bool {
	switch k {
	case "by":
		s.By = By(r.name())
	case "ch":
		s.Child = JobID(r.guid())
	case "el":
		s.Element = int(r.int())
	case "n":
		s.Number = int(r.int())
	case "of":
		s.Of = r.pauseRef()
	case "p":
		r.array(func() { s.Pauses = append(s.Pauses, r.pause()) })
	case "sg":
		s.Signal = r.guid()
	default:
		return false
	}
	return true
}

func (r *reader) pause() (p Pause) {
	r.object(func(k string) {
		switch k {
		case "f":
			p.For = r.big()
		case "fl":
			p.Flow = r.str()
		case "in":
			p.Input = r.raw()
		case "k":
			p.Kind = PauseKind(r.name())
		case "ky":
			p.Key = r.str()
		case "n":
			p.Name = r.str()
		case "p":
			p.Position = r.str()
		case "t":
			p.Topic = r.str()
		case "v":
			p.Version = r.str()
		default:
			r.unknown(k)
		}
	})
	return p
}

func (r *reader) pauseRef() *PauseRef {
	p := &PauseRef{}
	r.object(func(k string) {
		switch k {
		case "k":
			p.Kind = PauseKind(r.name())
		case "n":
			p.Name = r.str()
		case "p":
			p.Position = r.str()
		default:
			r.unknown(k)
		}
	})
	return p
}

// DecodeResponse reads what EncodeResponse wrote, and no other spelling.
// Payloads are not looked into: they are as canonical as they were.
func DecodeResponse(body []byte) (*Response, error) {
	r := &reader{b: body}
	s := r.response()
	if r.err == nil && r.i != len(r.b) {
		r.fail(ErrNotCanonical, "trailing data")
	}
	if r.err != nil {
		return nil, r.err
	}
	if !bytes.Equal(EncodeResponse(s), body) {
		return nil, fmt.Errorf("%w: encoding the response again gives other bytes", ErrNotCanonical)
	}
	return s, nil
}

func (r *reader) result() *Result {
	x := &Result{}
	r.object(func(k string) {
		switch k {
		case "by":
			x.By = By(r.name())
		case "c":
			x.Code = int(r.int())
		case "e":
			x.Error = r.failure()
		case "o":
			x.Output = r.raw()
		default:
			r.unknown(k)
		}
	})
	return x
}

func (r *reader) parent() *Parent {
	p := &Parent{}
	r.object(func(k string) {
		switch k {
		case "a":
			p.Activity = r.str()
		case "aw":
			p.Awaited = r.int() == 1
		case "d":
			p.DAD = r.name()
		case "g":
			p.Leg1 = r.guid()
		case "j":
			p.Job = JobID(r.guid())
		case "s":
			p.Space = r.str()
		case "tn":
			p.Turn = int(r.int())
		default:
			r.unknown(k)
		}
	})
	return p
}

func (r *reader) wait() (w Wait) {
	r.object(func(k string) {
		switch k {
		case "g":
			w.GUID = r.guid()
		case "k":
			w.Key = r.str()
		case "r":
			w.Repeat = r.int() == 1
		case "t":
			w.Topic = r.str()
		default:
			r.unknown(k)
		}
	})
	return w
}

// pair reads a list of two numbers.
func (r *reader) pair() (pair [2]int64) {
	r.tuple(2, func(i int) { pair[i] = r.int() })
	return pair
}

func (r *reader) closing() *Close {
	c := &Close{}
	r.object(func(k string) {
		switch k {
		case "c":
			c.Code = int(r.int())
		case "e":
			c.Error = r.failure()
		case "o":
			c.Output = r.raw()
		case "s":
			c.State = JobState(r.name())
		default:
			r.unknown(k)
		}
	})
	return c
}

func (r *reader) bound() *Bound {
	b := &Bound{}
	r.object(func(k string) {
		switch k {
		case "c":
			b.Chain = r.guid()
		case "h":
			b.Head.Hash = r.digest()
		case "s":
			b.Head.Seq = r.int()
		default:
			r.unknown(k)
		}
	})
	return b
}

func (r *reader) flow() *FlowRef {
	f := &FlowRef{}
	r.object(func(k string) {
		switch k {
		case "d":
			f.Digest = r.digest()
		case "n":
			f.Name = r.str()
		case "v":
			f.Version = r.str()
		default:
			r.unknown(k)
		}
	})
	return f
}

func (r *reader) effect() *Effect {
	f := &Effect{}
	r.object(func(k string) {
		switch k {
		case "c":
			f.Class = r.str()
		case "e":
			f.Error = r.failure()
		case "f":
			f.Fence = r.big()
		case "k":
			f.Key = r.digest()
		case "l":
			f.Late = r.int() == 1
		case "n":
			f.N = int(r.int())
		case "nm":
			f.Name = r.str()
		case "p":
			f.Position = r.str()
		case "r":
			f.Result = r.raw()
		case "tn":
			f.Turn = int(r.int())
		default:
			r.unknown(k)
		}
	})
	return f
}
