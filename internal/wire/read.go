package wire

import (
	"encoding/json"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// reader reads a message, see Decode.
type reader struct{ canonical.Scanner }

// member says where the value of a member goes: to is a pointer, or a function that reads
// the value.
type member struct {
	name string
	to   any
}

func (r *reader) hint(h *Hint) {
	r.object(
		member{"kind", (*string)(&h.Kind)}, member{"job", &h.Job}, member{"row", &h.Row},
		member{"activity", &h.Activity}, member{"dad", &h.DAD}, member{"turn", &h.Turn},
		member{"flow", &h.Flow}, member{"version", &h.Version}, member{"response", func() {
			h.Response = &Response{}
			r.response(h.Response)
		}},
	)
}

func (r *reader) request(q *Request) {
	r.object(
		member{"space", &q.Space}, member{"job", &q.Job}, member{"key", &q.Key}, member{"generation", &q.Generation},
		member{"flow", &q.Flow}, member{"version", &q.Version}, member{"activity", &q.Activity}, member{"dad", &q.DAD},
		member{"element", &q.Element}, member{"topic", &q.Topic}, member{"request", &q.Request}, member{"turn", &q.Turn},
		member{"attempt", &q.Attempt}, member{"attempts", &q.Attempts}, member{"fence", &q.Fence},
		member{"timeout_ms", &q.TimeoutMS}, member{"input", &q.Input}, member{"trace", &q.Trace},
		member{"root", &q.Root}, member{"root_generation", &q.RootGeneration},
	)
}

func (r *reader) response(x *Response) {
	r.object(
		member{"kind", (*string)(&x.Kind)}, member{"code", &x.Code}, member{"output", &x.Output}, member{"ref", &x.Ref},
		member{"error", func() {
			f := &Failure{}
			x.Error = f
			r.object(member{"class", &f.Class}, member{"message", &f.Message}, member{"data", &f.Data}, member{"stack", &f.Stack})
		}},
		member{"retry_after_ms", &x.RetryAfterMS}, member{"pauses", func() {
			for r.Enter('['); r.Next(']'); {
				x.Pauses = append(x.Pauses, Pause{})
				r.pause(&x.Pauses[len(x.Pauses)-1])
			}
		}},
		member{"undone", &x.Undone}, member{"began_us", &x.BeganUS}, member{"ran_us", &x.RanUS}, member{"moved", &x.Moved},
	)
}

func (r *reader) pause(p *Pause) {
	r.object(
		member{"kind", (*string)(&p.Kind)}, member{"name", &p.Name}, member{"position", &p.Position}, member{"for_us", &p.For},
		member{"topic", &p.Topic}, member{"key", &p.Key}, member{"flow", &p.Flow}, member{"version", &p.Version},
		member{"input", &p.Input},
	)
}

// object reads the given members; any may be missing. The search for each starts at the
// one before, because Encode writes them in this order.
func (r *reader) object(members ...member) {
	at, seen := 0, uint32(0)
	for r.Enter('{'); r.Next('}'); {
		key := r.Key()
		for n := 0; n < len(members) && members[at].name != string(key); n++ {
			if at++; at == len(members) {
				at = 0
			}
		}
		switch {
		case members[at].name != string(key):
			r.Form()
		case seen&(1<<at) != 0:
			r.Fail("the key comes twice")
		default:
			seen |= 1 << at
			r.value(members[at].to)
		}
	}
}

func (r *reader) value(to any) {
	if p, ok := to.(*json.RawMessage); ok {
		*p = append(*p, r.Form()...)
		return
	}
	if r.Null() {
		return
	}
	switch to := to.(type) {
	case *string:
		*to = string(r.Text())
	case *int:
		*to = int(r.Int())
	case *int64:
		*to = r.Int()
	case *bool:
		*to = r.Bool()
	case func():
		to()
	}
}
