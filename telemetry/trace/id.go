package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/quipu-journal/quipu/journal"
)

// TraceID names a trace; zero: none.
type TraceID [16]byte

// SpanID names a span in its trace; zero: none.
type SpanID [8]byte

// String returns 32 hexadecimal digits.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// IsZero reports whether t is unset.
func (t TraceID) IsZero() bool { return t == TraceID{} }

// String returns 16 hexadecimal digits.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s is unset.
func (s SpanID) IsZero() bool { return s == SpanID{} }

// Context is the place of a job in the traces of its space (O1).
type Context struct {
	Trace  TraceID
	Caller SpanID // the starter's span, which is the parent of the job's; zero: the job is a root
	// Flags are those of the starter's traceparent: 1 says that the trace is sampled. Without a
	// starter's span they say nothing.
	Flags byte
}

// Of returns the context of a job from the traceparent that is stored with it. "", and what is
// no traceparent, give a trace of the job's own. Such a trace's id is a hash of the job's, and
// not that itself: samplers read its bytes as random ones.
func Of(job journal.JobID, traceparent string) Context {
	if c, ok := parse(traceparent); ok {
		return c
	}
	h := hashed("trace", job[:])
	return Context{Trace: TraceID(h[:16])}
}

// Traceparent is the W3C header that names a span of the job, with flags.
func (c Context) Traceparent(span SpanID, flags byte) string {
	b := make([]byte, 0, traceparentLen)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	b = append(b, '-')
	return string(hex.AppendEncode(b, []byte{flags}))
}

const traceparentLen = 55

// parse reads a traceparent of version 00, or what a later version has in common with it.
func parse(s string) (c Context, ok bool) {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return c, false
	}
	if len(s) > traceparentLen && (s[:2] == "00" || s[traceparentLen] != '-') {
		return c, false
	}
	var flags [1]byte
	for _, p := range [...]struct {
		to   []byte
		text string
	}{{flags[:], s[:2]}, {c.Trace[:], s[3:35]}, {c.Caller[:], s[36:52]}, {flags[:], s[53:55]}} {
		if !lower(p.text) {
			return Context{}, false
		}
		if _, err := hex.Decode(p.to, []byte(p.text)); err != nil {
			return Context{}, false
		}
	}
	c.Flags = flags[0]
	return c, !c.Trace.IsZero() && !c.Caller.IsZero()
}

// lower says that a text has no upper-case digits, which the header may not have.
func lower(s string) bool {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'F' {
			return false
		}
	}
	return true
}

// OfJob is the id of a job's span.
func OfJob(job journal.JobID) SpanID { return span("job", job[:]) }

// OfActivity is the id of the span of an instance. pass is 0, or for a pivot the ordinal of the
// message of a cycle that sent it into another pass.
func OfActivity(job journal.JobID, activity, dad string, pass int) SpanID {
	return span("activity", job[:], []byte(activity), []byte(dad), []byte(strconv.Itoa(pass)))
}

// OfAttempt is the id of the span of one turn of a request: what its handler does belongs there.
func OfAttempt(request journal.GUID, turn int) SpanID {
	guid := journal.DeriveResponse(request, turn)
	return span("attempt", guid[:])
}

// OfMessage is the id of the span in which a message was handled.
func OfMessage(guid journal.GUID) SpanID { return span("message", guid[:]) }

// span hashes what a span is about to its id.
func span(part string, about ...[]byte) SpanID {
	h := hashed(part, about...)
	id := SpanID(h[:8])
	if id.IsZero() {
		id[7] = 1 // zero means none
	}
	return id
}

func hashed(part string, about ...[]byte) [32]byte {
	b := make([]byte, 0, 128)
	for _, f := range append([][]byte{[]byte("quipu-span-v1"), []byte(part)}, about...) {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return sha256.Sum256(b)
}
