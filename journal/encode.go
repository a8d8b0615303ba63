package journal

// Encode returns the entry's body: strict canonical JSON, the entry's only spelling (2.2).
// Payload fields must already be canonical.
func Encode(e *Entry) []byte { return AppendEntry(make([]byte, 0, 768), e) }

// AppendEntry appends the entry's body to dst, with its members in the order of their keys.
func AppendEntry(dst []byte, e *Entry) []byte { return write(dst, e, entryFields) }

// EncodeFrom returns what a job resumes, as the job's row stores it.
func EncodeFrom(f *From) []byte { return write(make([]byte, 0, 256), f, fromFields) }

// EncodeResponse returns a response alone, as the body of a dispatch row. Payload fields must
// be canonical.
func EncodeResponse(r *Response) []byte {
	return write(make([]byte, 0, 128+len(r.Output)), r, responseFields)
}
