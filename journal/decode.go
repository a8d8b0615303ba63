package journal

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/canonical"
)

// Errors of Decode. A reader never skips what it does not know (V16).
var (
	ErrUnknownVersion = errors.New("unknown entry version")
	ErrUnknownKind    = errors.New("unknown entry kind")
	ErrUnknownField   = errors.New("unknown entry field")
	ErrNotCanonical   = errors.New("entry is not canonical")
)

// Decode reads one body. It refuses unknown versions, kinds and fields, bodies
// over MaxEntryBytes, and every spelling but the one that Encode writes.
func Decode(body []byte) (*Entry, error) {
	e, err := decode(body)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("%w: invalid UTF-8", ErrNotCanonical)
	}
	if !bytes.Equal(AppendEntry(make([]byte, 0, len(body)), e), body) {
		return nil, fmt.Errorf("%w: encoding it again gives other bytes", ErrNotCanonical)
	}
	for _, p := range e.payloads() {
		again, err := canonical.Payload(p)
		if err != nil {
			return nil, fmt.Errorf("%w: payload: %w", ErrNotCanonical, err)
		}
		if !bytes.Equal(again, p) {
			return nil, fmt.Errorf("%w: a payload has another spelling", ErrNotCanonical)
		}
	}
	return e, nil
}

// DecodeTrusted reads one body that the store wrote and whose hash was
// checked, without comparing spellings again: the engine's own reads (J2).
func DecodeTrusted(body []byte) (*Entry, error) { return decode(body) }

// payloads lists the user data in the entry.
func (e *Entry) payloads() [][]byte {
	var ps [][]byte
	add := func(p []byte) {
		if p != nil {
			ps = append(ps, p)
		}
	}
	failure := func(f *Failure) {
		if f != nil {
			add(f.Data)
		}
	}
	add(e.Input)
	if r := e.Result; r != nil {
		add(r.Output)
		failure(r.Error)
	}
	if r := e.Response; r != nil {
		add(r.Output)
		failure(r.Error)
		for i := range r.Pauses {
			add(r.Pauses[i].Input)
		}
	}
	if c := e.Close; c != nil {
		add(c.Output)
		failure(c.Error)
	}
	if f := e.Effect; f != nil {
		add(f.Result)
		failure(f.Error)
	}
	return ps
}

func decode(body []byte) (*Entry, error) {
	if len(body) > MaxEntryBytes {
		return nil, fmt.Errorf("%w: body has %d bytes, the limit is %d", ErrNotCanonical, len(body), MaxEntryBytes)
	}
	r := &reader{b: body}
	e := &Entry{}
	version := int64(0)
	r.object(func(k string) {
		if k == "v" {
			version = r.int()
			return
		}
		if !r.identity(k, e) && !r.content(k, e) && !r.moved(k, e) {
			r.unknown(k)
		}
	})
	if r.err == nil && r.i != len(r.b) {
		r.fail(ErrNotCanonical, "trailing data")
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case version != Version:
		return nil, fmt.Errorf("%w %d: this build reads version %d", ErrUnknownVersion, version, Version)
	case !knownKinds[e.Kind]:
		return nil, fmt.Errorf("%w %.40q", ErrUnknownKind, e.Kind)
	}
	return e, nil
}

var knownKinds = map[Kind]bool{
	KindCreated: true, KindLeg1: true, KindLeg2: true, KindStale: true, KindSignal: true, KindInterrupt: true,
	KindEffectStarted: true, KindEffectCompleted: true, KindEffectFailed: true,
	KindDeadLetter: true, KindOperator: true, KindQuarantine: true, KindExpired: true,
}

// identity reads the members that say which entry this is.
func (r *reader) identity(k string, e *Entry) bool {
	switch k {
	case "act":
		e.Activity = r.str()
	case "ch":
		e.Chain = r.guid()
	case "dad":
		e.DAD = r.name()
	case "g":
		e.GUID = r.guid()
	case "gen":
		e.Generation = r.int()
	case "job":
		e.Job = JobID(r.guid())
	case "k":
		e.Kind = Kind(r.name())
	case "key":
		e.Key = r.str()
	case "leg":
		e.Leg = int(r.int())
	case "m":
		r.array(func() { e.Marks = append(e.Marks, Mark(r.name())) })
	case "seq":
		e.Seq = r.int()
	case "sp":
		e.Space = r.str()
	case "t":
		e.Time = r.big()
	case "tr":
		e.Trace = r.str()
	default:
		return false
	}
	return true
}

// content reads the members that say what the plan did.
func (r *reader) content(k string, e *Entry) bool {
	switch k {
	case "ab":
		e.Abandoned = int(r.int())
	case "by":
		r.texts(func(k string) *string { return pick(k, "b", &e.Build, "w", &e.Writer) })
	case "cl":
		e.Close = r.closing()
	case "dis":
		r.array(func() { e.Dispatched = append(e.Dispatched, r.dispatched()) })
	case "dl":
		t := &Trouble{}
		e.Trouble = t
		r.texts(func(k string) *string { return pick(k, "m", &t.Message, "r", &t.Reason) })
	case "eff":
		e.Effect = r.effect()
	case "da":
		e.Disarmed = r.guids()
	case "end":
		e.Ended = r.guids()
	case "fl":
		e.Flow = r.flow()
	case "fo":
		e.Folded = r.guids()
	case "hd":
		e.Bound = r.bound()
	case "in":
		e.Input = r.raw()
	case "led":
		r.array(func() { e.Ledgers = append(e.Ledgers, r.ledgerMove()) })
	case "op":
		o := &Operator{}
		e.Operator = o
		r.texts(func(k string) *string {
			if k == "w" {
				return &o.Who
			}
			return pick(k, "a", &o.Action, "r", &o.Reason)
		})
	case "rc":
		r.array(func() { e.Receipts = append(e.Receipts, r.receiptMove()) })
	case "rs":
		e.Response = r.response()
	case "up":
		r.array(func() { e.Updated = append(e.Updated, r.updated()) })
	case "wd":
		e.Withdrawn = r.guids()
	default:
		return false
	}
	return true
}

// moved reads the members that say what was counted, and what waits.
func (r *reader) moved(k string, e *Entry) bool {
	switch k {
	case "el":
		p := r.pair()
		e.Elements = &Elements{Count: int(p[0]), Parallel: int(p[1])}
	case "opn":
		p := r.pair()
		e.Open = &OpenMove{Before: int(p[0]), After: int(p[1])}
	case "pa":
		e.Parent = r.parent()
	case "rt":
		e.Result = r.result()
	case "sem":
		p := r.pair()
		e.Semaphore = &SemaphoreMove{Before: p[0], After: p[1]}
	case "wt":
		r.array(func() { e.Waits = append(e.Waits, r.wait()) })
	default:
		return false
	}
	return true
}
