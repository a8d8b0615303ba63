package export

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/journal"
)

// Format is the name and version of the format, in every header.
const Format = "quipu-export-v3"

// Limits of a line, without its line end.
const (
	MaxHeader = 64 << 10
	// MaxLine holds an entry of journal.MaxEntryBytes in base64 with its frame.
	MaxLine = (journal.MaxEntryBytes+2)/3*4 + 512
	// MaxKey bounds the job's key in a header, in bytes.
	MaxKey = 4 << 10
)

// Errors about the form of a line.
var (
	// ErrFormat says that a line is not one that a Writer of this format writes.
	ErrFormat = errors.New("not a line of a " + Format + " file")
	// ErrTooLong says that a line, a key or a body is over its limit.
	ErrTooLong = errors.New("over the limit")
)

// Header names the job whose entries follow.
type Header struct {
	Space      string
	Job        journal.JobID
	Generation int64
	Key        string
	Head       journal.Head   // of the main chain
	Flow       journal.Digest // of the flow version's canonical definition
}

type headerLine struct {
	Format     string   `json:"format"`
	Space      string   `json:"space"`
	Job        string   `json:"job"`
	Generation int64    `json:"generation"`
	Key        string   `json:"key"`
	Head       headLine `json:"head"`
	Flow       string   `json:"flow"`
}

type headLine struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// appendHeader appends the line of a header.
func appendHeader(dst []byte, h *Header) ([]byte, error) {
	if len(h.Key) > MaxKey || !utf8.ValidString(h.Key) {
		return nil, fmt.Errorf("%w: the key of job %s has %d bytes or is no UTF-8, the limit is %d", ErrTooLong, h.Job, len(h.Key), MaxKey)
	}
	line := headerLine{
		Format: Format, Space: h.Space, Job: h.Job.String(), Generation: h.Generation, Key: h.Key,
		Head: headLine{h.Head.Seq, h.Head.Hash.String()}, Flow: h.Flow.String(),
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&line); err != nil {
		return nil, err
	}
	return append(dst, b.Bytes()...), nil
}

func parseHeader(line []byte) (Header, error) {
	var l headerLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return Header{}, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	if l.Format != Format {
		return Header{}, fmt.Errorf("%w: the header says format %.40q, this build reads %q", ErrFormat, l.Format, Format)
	}
	h := Header{Space: l.Space, Generation: l.Generation, Key: l.Key}
	var errs [3]error
	h.Job, errs[0] = journal.ParseJobID(l.Job)
	h.Head.Hash, errs[1] = journal.ParseDigest(l.Head.Hash)
	h.Head.Seq = l.Head.Seq
	h.Flow, errs[2] = journal.ParseDigest(l.Flow)
	if err := errors.Join(errs[:]...); err != nil {
		return Header{}, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	if h.Job.IsZero() {
		return Header{}, fmt.Errorf("%w: the header names no job", ErrFormat)
	}
	again, err := appendHeader(nil, &h)
	if err != nil {
		return Header{}, err
	}
	if !bytes.Equal(bytes.TrimSuffix(again, []byte("\n")), line) {
		return Header{}, fmt.Errorf("%w: header in another spelling", ErrFormat)
	}
	return h, nil
}

const uuidLen, digestLen = 36, 64

// appendEntry appends the line of an entry.
func appendEntry(dst []byte, rec *journal.Record) []byte {
	dst = append(dst, '{')
	if !rec.Chain.IsZero() {
		dst = append(dst, `"c":"`...)
		dst = append(append(dst, rec.Chain.String()...), `",`...)
	}
	dst = strconv.AppendInt(append(dst, `"s":`...), rec.Seq, 10)
	dst = append(dst, `,"h":"`...)
	dst = hex.AppendEncode(dst, rec.Hash[:])
	dst = append(dst, `","b":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, rec.Body)
	return append(dst, "\"}\n"...)
}

// parseEntry reads exactly what appendEntry writes.
func parseEntry(line []byte) (rec journal.Record, err error) {
	c := cutter{rest: line}
	c.want("{")
	if c.have(`"c":"`) {
		rec.Chain, err = journal.ParseGUID(string(c.take(uuidLen)))
		c.fail(err)
		c.want(`",`)
		if rec.Chain.IsZero() {
			c.fail(errors.New("the main chain is not named"))
		}
	}
	c.want(`"s":`)
	rec.Seq = c.number()
	c.want(`,"h":"`)
	rec.Hash, err = journal.ParseDigest(string(c.take(digestLen)))
	c.fail(err)
	c.want(`","b":"`)
	rec.Body, err = c.body()
	if err != nil {
		return journal.Record{}, fmt.Errorf("%w: entry: %w", ErrFormat, err)
	}
	return rec, nil
}

// appendAttachment appends the line of what stands beside the entries: a definition, or an output.
func appendAttachment(dst []byte, x *journal.Attachment) []byte {
	kind := `{"o":"`
	if x.Definition {
		kind = `{"f":"`
	}
	dst = hex.AppendEncode(append(dst, kind...), x.Digest[:])
	dst = append(dst, `","b":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, x.Body)
	return append(dst, "\"}\n"...)
}

// isAttachment tells such a line from an entry.
func isAttachment(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"o"`)) || bytes.HasPrefix(line, []byte(`{"f"`))
}

// parseAttachment reads exactly what appendAttachment writes.
func parseAttachment(line []byte) (x journal.Attachment, err error) {
	c := cutter{rest: line}
	if x.Definition = c.have(`{"f":"`); !x.Definition {
		c.want(`{"o":"`)
	}
	x.Digest, err = journal.ParseDigest(string(c.take(digestLen)))
	c.fail(err)
	c.want(`","b":"`)
	x.Body, err = c.body()
	if err != nil {
		return journal.Attachment{}, fmt.Errorf("%w: what stands beside the entries: %w", ErrFormat, err)
	}
	return x, nil
}

// body reads base64 to the end of the line.
func (c *cutter) body() ([]byte, error) {
	coded := c.until('"')
	c.want(`"}`)
	if c.err == nil && len(c.rest) > 0 {
		c.fail(fmt.Errorf("%d bytes follow its end", len(c.rest)))
	}
	if c.err != nil {
		return nil, c.err
	}
	body := make([]byte, base64.StdEncoding.DecodedLen(len(coded)))
	n, err := base64.StdEncoding.Strict().Decode(body, coded)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if n > journal.MaxEntryBytes {
		return nil, fmt.Errorf("%w: a body of %d bytes, the limit is %d", ErrTooLong, n, journal.MaxEntryBytes)
	}
	return body[:n], nil
}

// cutter takes a line apart from the left. It keeps its first fault.
type cutter struct {
	rest []byte
	err  error
}

func (c *cutter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *cutter) have(s string) bool {
	if c.err != nil || !bytes.HasPrefix(c.rest, []byte(s)) {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

func (c *cutter) want(s string) {
	if !c.have(s) {
		c.fail(fmt.Errorf("want %s before %.20q", s, c.rest))
	}
}

func (c *cutter) take(n int) []byte {
	if c.err != nil || len(c.rest) < n {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cutter) until(end byte) []byte {
	i := bytes.IndexByte(c.rest, end)
	if i < 0 {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	return c.take(i)
}

// number reads a positive integer in its shortest spelling.
func (c *cutter) number() int64 {
	i := 0
	for i < len(c.rest) && c.rest[i] >= '0' && c.rest[i] <= '9' {
		i++
	}
	digits := c.take(i)
	n, err := strconv.ParseInt(string(digits), 10, 64)
	c.fail(err)
	if n < 1 || digits[0] == '0' {
		c.fail(errors.New("want a seq of 1 or more"))
	}
	return n
}
