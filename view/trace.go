package view

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Tree is what a journal says of its job as spans (O2). Parents come before their children.
type Tree struct {
	Job     journal.JobID    `json:"job"`
	Context Context          `json:"context"`
	Space   string           `json:"space"`
	Key     string           `json:"key"`
	State   journal.JobState `json:"state"`
	Spans   []Span           `json:"spans"`
}

// Context is the place of a job in the traces of its space (O1).
type Context struct {
	Trace  TraceID `json:"trace"`
	Caller SpanID  `json:"caller,omitzero"` // the starter's span, the parent of the job's; zero: the job is a root
	// Flags are those of the starter's traceparent: 1 says that the trace is sampled. Without a
	// starter's span they say nothing.
	Flags byte `json:"flags,omitempty"`
}

// Span is one span of a job's tree.
type Span struct {
	ID, Parent SpanID
	Part       string // job, activity, attempt, run, effect, wait …; docs/traces.md has all
	About      string // the activity, the flow or the effect; may be ""
	Kind       SpanKind
	Start, End int64 // µs since 1970, by the database's clock; End 0: it is still open
	Attributes []Attribute
	Links      []Link
	Failure    *Failure // nil: none
	Code       int      // of a failure; 0: it has none
}

// SpanKind is the kind of a span, as OpenTelemetry has them.
type SpanKind string

// The kinds of spans.
const (
	Internal SpanKind = ""
	Producer SpanKind = "producer"
	Consumer SpanKind = "consumer"
	Client   SpanKind = "client"
)

// Attribute is a text, or a number if Text is "".
type Attribute struct {
	Key    string
	Text   string
	Number int64
}

// Link is a span of another job that has to do with this one.
type Link struct {
	Job   journal.JobID `json:"job"`
	Trace TraceID       `json:"trace"` // of the job
	Span  SpanID        `json:"span"`
	Why   string        `json:"why"` // parent, child, resumes, resumed, interrupts
}

// Name is the part and what it is about. It has few values however many jobs run.
func (s *Span) Name() string {
	if s.About == "" {
		return s.Part
	}
	return s.Part + " " + s.About
}

// spanJSON is a span in JSON.
type spanJSON struct {
	ID         SpanID     `json:"id"`
	Parent     SpanID     `json:"parent,omitzero"`
	Part       string     `json:"part"`
	About      string     `json:"about,omitempty"`
	Kind       SpanKind   `json:"kind,omitempty"`
	Start      time.Time  `json:"start"`
	End        time.Time  `json:"end,omitzero"` // none: it is still open
	Code       int        `json:"code,omitempty"`
	Error      *Failure   `json:"error,omitempty"`
	Attributes attributes `json:"attributes,omitempty"`
	Links      []Link     `json:"links,omitempty"`
}

// attributes are an object in JSON, with texts and numbers, in the same order.
type attributes []Attribute

func (all attributes) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, a := range all {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(a.Key)
		if err != nil {
			return nil, err
		}
		out = append(append(out, key...), ':')
		if a.Text == "" {
			out = strconv.AppendInt(out, a.Number, 10)
			continue
		}
		text, err := json.Marshal(a.Text)
		if err != nil {
			return nil, err
		}
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

func (all *attributes) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tokens []json.Token
	for {
		t, err := d.Token()
		if err != nil {
			break // the end: text is one value
		}
		tokens = append(tokens, t)
	}
	for i := 1; i+1 < len(tokens); i += 2 {
		a := Attribute{}
		a.Key, _ = tokens[i].(string)
		switch v := tokens[i+1].(type) {
		case string:
			a.Text = v
		case json.Number:
			a.Number, _ = v.Int64()
		default:
			return fmt.Errorf("attribute %q of a span is no text and no number", a.Key)
		}
		*all = append(*all, a)
	}
	return nil
}

// MarshalJSON writes times as times, and attributes as members of an object.
func (s Span) MarshalJSON() ([]byte, error) {
	return json.Marshal(spanJSON{
		ID: s.ID, Parent: s.Parent, Part: s.Part, About: s.About, Kind: s.Kind, Start: micros(s.Start),
		End: micros(s.End), Code: s.Code, Error: s.Failure, Links: s.Links, Attributes: s.Attributes,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Span) UnmarshalJSON(text []byte) error {
	var in spanJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*s = Span{
		ID: in.ID, Parent: in.Parent, Part: in.Part, About: in.About, Kind: in.Kind, Start: in.Start.UnixMicro(),
		Code: in.Code, Failure: in.Error, Links: in.Links, Attributes: in.Attributes,
	}
	if !in.End.IsZero() {
		s.End = in.End.UnixMicro()
	}
	return nil
}

// micros is the time of microseconds since 1970; 0 is none.
func micros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Ended returns the spans that have ended. They are the same in every later tree of the job.
func (t *Tree) Ended() []Span {
	return slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return s.End == 0 })
}

// Depths returns the depth of each span of the tree, 0 for the job, and sorts the spans so that
// each stands behind its parent, and children in the order of time.
func (t *Tree) Depths() []int {
	children := map[SpanID][]int{}
	for i := range t.Spans {
		children[t.Spans[i].Parent] = append(children[t.Spans[i].Parent], i)
	}
	sorted := make([]Span, 0, len(t.Spans))
	depths := make([]int, 0, len(t.Spans))
	var walk func(parent SpanID, depth int)
	walk = func(parent SpanID, depth int) {
		below := children[parent]
		slices.SortStableFunc(below, func(x, y int) int { return cmp.Compare(t.Spans[x].Start, t.Spans[y].Start) })
		for _, i := range below {
			sorted, depths = append(sorted, t.Spans[i]), append(depths, depth)
			walk(t.Spans[i].ID, depth+1)
		}
	}
	walk(t.Context.Caller, 0)
	t.Spans = sorted
	return depths
}

// TraceID names a trace; zero: none.
type TraceID [16]byte

// SpanID names a span in its trace; zero: none.
type SpanID [8]byte

// String returns 32 hexadecimal digits.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// IsZero reports whether t is unset.
func (t TraceID) IsZero() bool { return t == TraceID{} }

// MarshalText writes the String.
func (t TraceID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }

// UnmarshalText reads the String.
func (t *TraceID) UnmarshalText(text []byte) error { return unhex(t[:], text) }

// String returns 16 hexadecimal digits.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s is unset.
func (s SpanID) IsZero() bool { return s == SpanID{} }

// MarshalText writes the String.
func (s SpanID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads the String.
func (s *SpanID) UnmarshalText(text []byte) error { return unhex(s[:], text) }

func unhex(to, text []byte) error {
	if len(text) != hex.EncodedLen(len(to)) {
		return fmt.Errorf("the id %.64q has not %d hexadecimal digits", text, hex.EncodedLen(len(to)))
	}
	_, err := hex.Decode(to, text)
	return err
}

// Traceparent is the W3C header that names a span of the job, with flags.
func (c Context) Traceparent(span SpanID, flags byte) string {
	return fmt.Sprintf("00-%s-%s-%02x", c.Trace, span, flags)
}
