package spans

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Of returns the context of a job from the traceparent that is stored with it. "", and what is
// no traceparent, give a trace of the job's own. Such a trace's id is a hash of the job's, and
// not that itself: samplers read its bytes as random ones.
func Of(job journal.JobID, traceparent string) view.Context {
	if c, ok := parse(traceparent); ok {
		return c
	}
	h := hashed("trace", job[:])
	return view.Context{Trace: view.TraceID(h[:16])}
}

const traceparentLen = 55

// parse reads a traceparent of version 00, or what a later version has in common with it.
func parse(s string) (c view.Context, ok bool) {
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
			return view.Context{}, false
		}
		if _, err := hex.Decode(p.to, []byte(p.text)); err != nil {
			return view.Context{}, false
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
func OfJob(job journal.JobID) view.SpanID { return span("job", job[:]) }

// OfActivity is the id of the span of an instance. pass is 0, or for a pivot the ordinal of the
// message of a cycle that sent it into another pass.
func OfActivity(job journal.JobID, activity, dad string, pass int) view.SpanID {
	return span("activity", job[:], []byte(activity), []byte(dad), []byte(strconv.Itoa(pass)))
}

// OfAttempt is the id of the span of one turn of a request: what its handler does belongs there.
func OfAttempt(request journal.GUID, turn int) view.SpanID {
	guid := journal.DeriveResponse(request, turn)
	return span("attempt", guid[:])
}

// OfMessage is the id of the span in which a message was handled.
func OfMessage(guid journal.GUID) view.SpanID { return span("message", guid[:]) }

// span hashes what a span is about to its id.
func span(part string, about ...[]byte) view.SpanID {
	h := hashed(part, about...)
	id := view.SpanID(h[:8])
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
