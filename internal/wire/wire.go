package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of messages.
const (
	MaxInline = 256 << 10           // bytes of a payload inside a message (T4, E6)
	MaxResult = collation.MaxResult // bytes of a result or a response (E6)
	// MaxRetryAfterMS bounds the delay that a failed attempt can ask for: a year.
	MaxRetryAfterMS = int64(collation.MaxRetryDelay) / 1000
	// MaxRanUS bounds the reported duration of a run: ten years.
	MaxRanUS = 10 * 365 * 24 * 3600 * 1_000_000
	// maxBeganUS is the largest integer that JSON numbers hold exactly, in the year 2255.
	maxBeganUS = 1<<53 - 1
	MaxText    = 16 << 10 // bytes of an error's message or stack; longer ones are cut by the worker
	// MaxEffectName bounds the name of an effect, in bytes.
	MaxEffectName = 200
	// MaxFailureData bounds the data of an error, in bytes of canonical JSON.
	MaxFailureData = 64 << 10
)

// Inline bounds a payload inside a message for a bus whose messages have at most
// maxPayload bytes (0: unbounded). It is MaxInline, and at most half of maxPayload, so
// that the rest of the message always fits (T4).
func Inline(maxPayload int) int {
	if maxPayload > 0 {
		return min(MaxInline, maxPayload/2)
	}
	return MaxInline
}

// ErrMalformed is wrapped by every error of a decoder: the message is poison (T3).
var ErrMalformed = errors.New("malformed message")

// Hint is a message to the engine: it names a row that may need handling.
type Hint struct {
	Kind     journal.MessageKind `json:"kind"`
	Job      string              `json:"job"`
	Row      string              `json:"row"`
	Activity string              `json:"activity"`
	DAD      string              `json:"dad"`
	Turn     int                 `json:"turn,omitempty"`
	Flow     string              `json:"flow"`
	Version  string              `json:"version"`
	Response *Response           `json:"response,omitempty"` // of kind response only
}

// Request is a message to a worker (T6).
type Request struct {
	Space      string          `json:"space"`
	Job        string          `json:"job"`
	Key        string          `json:"key"`
	Generation int64           `json:"generation"`
	Flow       string          `json:"flow"`
	Version    string          `json:"version"`
	Activity   string          `json:"activity"`
	DAD        string          `json:"dad"`
	Element    int             `json:"element"`
	Topic      string          `json:"topic"`
	Request    string          `json:"request"`
	Turn       int             `json:"turn"`
	Attempt    int             `json:"attempt"`
	Attempts   int             `json:"attempts"`
	Fence      int64           `json:"fence"`
	TimeoutMS  int64           `json:"timeout_ms,omitempty"` // of this attempt; 0: none
	Input      json.RawMessage `json:"input,omitempty"`      // absent: read it from the row
	Trace      string          `json:"trace,omitempty"`
	// Root and RootGeneration name, for a job that resumes another, the first job of that
	// chain, under whose name effect keys are made (E1).
	Root           string `json:"root,omitempty"`
	RootGeneration int64  `json:"root_generation,omitempty"`
}

// Response is the answer of a worker.
type Response struct {
	Kind         journal.ResponseKind `json:"kind"`
	Code         int                  `json:"code"`
	Output       json.RawMessage      `json:"output,omitempty"`
	Ref          string               `json:"ref,omitempty"` // SHA-256 of an output that is stored separately
	Error        *Failure             `json:"error,omitempty"`
	RetryAfterMS int64                `json:"retry_after_ms,omitempty"`
	Pauses       []Pause              `json:"pauses,omitempty"` // of a suspended function
	// Undone says, with a terminal error, that the function's compensations have run.
	Undone bool `json:"undone,omitempty"`
	// BeganUS is when the run began, in microseconds since 1970, and RanUS how long it
	// took, at most MaxRanUS. They are for people who read the history.
	BeganUS int64 `json:"began_us,omitempty"`
	RanUS   int64 `json:"ran_us,omitempty"`
	// Moved says that the run has written the row of its request: it leased it, or recorded effects.
	// So an engine in another process does not decide on the row that it remembers (W6). It is a hint.
	Moved bool `json:"moved,omitempty"`
}

// Pause is one thing that a suspended function waits for (E12): Go workers only.
type Pause struct {
	Kind     journal.PauseKind `json:"kind"`
	Name     string            `json:"name"`
	Position string            `json:"position"`
	For      int64             `json:"for_us,omitempty"` // duration of a sleep, or timeout of a signal
	Topic    string            `json:"topic,omitempty"`
	Key      string            `json:"key,omitempty"`
	Flow     string            `json:"flow,omitempty"`
	Version  string            `json:"version,omitempty"`
	Input    json.RawMessage   `json:"input,omitempty"`
}

// Failure is an error in a response.
type Failure struct {
	Class   string          `json:"class"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
	Stack   string          `json:"stack,omitempty"`
}

// FromJournal gives the wire form of a recorded response.
func FromJournal(r *journal.Response) *Response {
	w := &Response{Kind: r.Kind, Code: r.Code, Output: r.Output, BeganUS: r.Began, RanUS: r.Ran}
	if !r.Ref.IsZero() {
		w.Ref = r.Ref.String()
	}
	if r.Error != nil {
		w.Error = &Failure{Class: r.Error.Class, Message: r.Error.Message, Data: r.Error.Data, Stack: r.Error.Stack}
	}
	return w
}

// Journal checks the response and returns its recorded form, without turn, attempt and
// request, which the engine fills in.
func (r *Response) Journal() (*journal.Response, error) {
	out := &journal.Response{
		Kind: r.Kind, Code: r.Code, RetryAfter: r.RetryAfterMS * 1000, Undone: r.Undone, Began: r.BeganUS, Ran: r.RanUS,
	}
	if r.BeganUS < 0 || r.BeganUS > maxBeganUS || r.RanUS < 0 || r.RanUS > MaxRanUS {
		return nil, fmt.Errorf("%w: began_us %d and ran_us %d: neither is negative, the limits are %d and %d", ErrMalformed, r.BeganUS, r.RanUS, int64(maxBeganUS), int64(MaxRanUS))
	}
	switch r.Kind {
	case journal.ResponseTerminal, journal.ResponseFailedAttempt, journal.ResponseParked:
	case journal.ResponseSuspended:
		return r.suspended()
	default:
		return nil, fmt.Errorf("%w: response kind %.40q", ErrMalformed, r.Kind)
	}
	if r.Code != collation.CodeOK && !IsErrorCode(r.Code) {
		return nil, fmt.Errorf("%w: code %d is neither 200 nor within 400…599", ErrMalformed, r.Code)
	}
	if r.Kind != journal.ResponseTerminal && r.Code == collation.CodeOK {
		return nil, fmt.Errorf("%w: a %s response with code 200: only a terminal one is a success", ErrMalformed, r.Kind)
	}
	if r.RetryAfterMS < 0 || r.RetryAfterMS > MaxRetryAfterMS {
		return nil, fmt.Errorf("%w: retry_after_ms %d is not within 0…%d", ErrMalformed, r.RetryAfterMS, MaxRetryAfterMS)
	}
	if r.Undone && (r.Kind != journal.ResponseTerminal || r.Error == nil) {
		return nil, fmt.Errorf("%w: undone belongs to a terminal error", ErrMalformed)
	}
	if (r.Error == nil) != (r.Code == collation.CodeOK) {
		return nil, fmt.Errorf("%w: code %d and its error do not fit together", ErrMalformed, r.Code)
	}
	var err error
	if out.Output, err = payload("output", r.Output); err != nil {
		return nil, err
	}
	if r.Ref != "" && r.Output != nil {
		return nil, fmt.Errorf("%w: an output and the ref of one", ErrMalformed)
	}
	if r.Ref != "" {
		if out.Ref, err = journal.ParseDigest(r.Ref); err != nil {
			return nil, fmt.Errorf("%w: ref: %w", ErrMalformed, err)
		}
	}
	if e := r.Error; e != nil {
		if text := e.Class + e.Message + e.Stack; strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%w: an error text has U+0000 or is no UTF-8", ErrMalformed)
		}
		if len(e.Message) > MaxText || len(e.Stack) > MaxText || len(e.Class) > MaxText {
			return nil, fmt.Errorf("%w: an error text is over %d bytes", ErrMalformed, MaxText)
		}
		out.Error = &journal.Failure{Class: e.Class, Message: e.Message, Stack: e.Stack}
		if out.Error.Data, err = payload("error data", e.Data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func payload(what string, p []byte) ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	c, err := canonical.Payload(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, what, err)
	}
	if len(c) > MaxResult { // may be longer than p: 1e20 is spelled out
		return nil, fmt.Errorf("%w: %s has %d bytes in its canonical form, the limit is %d", ErrMalformed, what, len(c), MaxResult)
	}
	return c, nil
}

// Encode marshals a Hint, Request or Response. Payloads keep their bytes.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a payload that is no JSON can fail here, and payloads are checked on
		// entry.
		panic(fmt.Sprintf("wire: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Decode reads a Hint, Request or Response in any spelling. It ignores unknown members,
// takes null as absent, and makes payloads canonical. Its error wraps ErrMalformed and
// names the place.
func Decode[T Hint | Request | Response](b []byte) (*T, error) {
	v := new(T)
	r := reader{canonical.Scan(b)}
	r.Loose = true // an error's text may be cut within a character
	switch v := any(v).(type) {
	case *Hint:
		r.hint(v)
	case *Request:
		r.request(v)
	case *Response:
		r.response(v)
	}
	if f := r.End(); f != nil {
		return nil, fmt.Errorf("%w: %s (byte %d): %s", ErrMalformed, f.Path, f.Offset, f.Reason)
	}
	return v, nil
}
