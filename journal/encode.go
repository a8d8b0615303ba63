package journal

// Encode returns the entry's body: strict canonical JSON, the only spelling of
// the entry (2.2). Payload fields must be canonical already.
func Encode(e *Entry) []byte { return AppendEntry(make([]byte, 0, 768), e) }

// AppendEntry appends the entry's body to dst. Members stand in the order of
// their keys.
func AppendEntry(dst []byte, e *Entry) []byte { return write(dst, e, entryFields) }

// EncodeFrom returns what a job resumes by itself, as the job's row has it.
func EncodeFrom(f *From) []byte { return write(make([]byte, 0, 256), f, fromFields) }

// EncodeResponse returns a response by itself, as the body of a dispatch row
// that brings one. Payload fields must be canonical.
func EncodeResponse(r *Response) []byte {
	return write(make([]byte, 0, 128+len(r.Output)), r, responseFields)
}
