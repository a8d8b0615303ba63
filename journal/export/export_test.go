package export_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
)

func header(n byte) export.Header {
	return export.Header{
		Space: "shop", Job: journal.JobID{n}, Generation: 3, Key: "order <7> é",
		Head: journal.Head{Seq: 2, Hash: journal.Digest{1, n}}, Flow: journal.Digest{2, n},
	}
}

func records(job journal.JobID) []journal.Record {
	return []journal.Record{
		{Job: job, Seq: 1, Body: []byte(`{"a":1}`), Hash: journal.Digest{1}},
		{Job: job, Seq: 2, Body: bytes.Repeat([]byte("x"), 200_000), Hash: journal.Digest{2}},
		{Job: job, Chain: journal.GUID{9}, Seq: 1, Body: []byte{}, Hash: journal.Digest{3}},
	}
}

// beside is what stands beside the entries of each job.
func beside(job journal.JobID) []journal.Attachment {
	return []journal.Attachment{
		{Definition: true, Digest: journal.Digest{4, job[0]}, Body: []byte(`{"flow":"f"}`)},
		{Digest: journal.Digest{5}, Body: bytes.Repeat([]byte("y"), 300_000)},
		{Digest: journal.Digest{6}, Body: []byte{}},
	}
}

func file(t testing.TB, jobs ...byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := export.NewWriter(&b)
	for _, n := range jobs {
		require.NoError(t, w.Begin(header(n)))
		for _, x := range beside(header(n).Job) {
			require.NoError(t, w.Attachment(x))
		}
		for _, rec := range records(header(n).Job) {
			require.NoError(t, w.Write(rec))
		}
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

func readAll(r *export.Reader) (headers []export.Header, recs [][]journal.Record, err error) {
	headers, _, recs, err = readBoth(r)
	return headers, recs, err
}

func readBoth(
	r *export.Reader,
) (headers []export.Header, asides [][]journal.Attachment, recs [][]journal.Record, err error) {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, asides, recs, nil
		}
		if err != nil {
			return headers, asides, recs, err
		}
		headers = append(headers, h)
		asides, recs = append(asides, nil), append(recs, nil)
		for x, err := range r.Attachments() {
			if err != nil {
				return headers, asides, recs, err
			}
			asides[len(asides)-1] = append(asides[len(asides)-1], x)
		}
		for rec, err := range r.Entries() {
			if err != nil {
				return headers, asides, recs, err
			}
			recs[len(recs)-1] = append(recs[len(recs)-1], rec)
		}
	}
}

// What is written is read back, byte for byte, job after job (2.6, J9).
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	raw := file(t, 1, 2)
	for name, in := range map[string]io.Reader{
		"whole": bytes.NewReader(raw), "byte by byte": iotest.OneByteReader(bytes.NewReader(raw)),
	} {
		headers, asides, recs, err := readBoth(export.NewReader(in))
		require.NoError(t, err, name)
		require.Equal(t, [][]journal.Attachment{beside(journal.JobID{1}), beside(journal.JobID{2})}, asides, name)
		require.Equal(t, []export.Header{header(1), header(2)}, headers, name)
		require.Equal(t, [][]journal.Record{records(journal.JobID{1}), records(journal.JobID{2})}, recs, name)
	}
}

// Entries skips what stands beside them and was not read.
func TestExportSkipsToEntries(t *testing.T) {
	t.Parallel()
	r := export.NewReader(bytes.NewReader(file(t, 1)))
	_, err := r.Next()
	require.NoError(t, err)
	n := 0
	for rec, err := range r.Entries() {
		require.NoError(t, err)
		require.Equal(t, records(journal.JobID{1})[n], rec)
		n++
	}
	require.Equal(t, 3, n)
}

// Next skips entries that were not read.
func TestExportSkipsToNextJob(t *testing.T) {
	t.Parallel()
	r := export.NewReader(bytes.NewReader(file(t, 1, 2, 3)))
	_, err := r.Next()
	require.NoError(t, err)
	for range r.Entries() {
		break
	}
	h, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, header(2), h)
}

// Every error names its line and is final.
func TestExportErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	var bare bytes.Buffer
	w := export.NewWriter(&bare)
	require.NoError(t, w.Begin(header(1)))
	for _, rec := range records(header(1).Job) {
		require.NoError(t, w.Write(rec))
	}
	require.NoError(t, w.Flush())
	good := bare.String()
	lines := strings.SplitAfter(good, "\n")
	beside := strings.SplitAfter(string(file(t, 1)), "\n")
	long := `{"s":4,"h":"` + strings.Repeat("0", 64) + `","b":"` + strings.Repeat("A", export.MaxLine) + `"}` + "\n"
	for name, c := range map[string]struct {
		in   string
		line int
		err  error
	}{
		"no header":      {lines[1], 1, export.ErrFormat},
		"another format": {strings.Replace(good, "export-v3", "export-v2", 1), 1, export.ErrFormat},
		"unknown member": {strings.Replace(good, `"space"`, `"more":1,"space"`, 1), 1, export.ErrFormat},
		"other spelling": {strings.Replace(good, `"space":"shop"`, `"space": "shop"`, 1), 1, export.ErrFormat},
		"no job": {
			strings.Replace(good, header(1).Job.String(), journal.JobID{}.String(), 1), 1, export.ErrFormat,
		},
		"bad id":                      {strings.Replace(good, header(1).Job.String(), "x", 1), 1, journal.ErrMalformedID},
		"blank line":                  {lines[0] + "\n" + lines[1], 2, export.ErrFormat},
		"seq 0":                       {lines[0] + strings.Replace(lines[1], `"s":1`, `"s":0`, 1), 2, export.ErrFormat},
		"seq 01":                      {lines[0] + strings.Replace(lines[1], `"s":1`, `"s":01`, 1), 2, export.ErrFormat},
		"no seq":                      {lines[0] + strings.Replace(lines[1], `"s":1`, `"s":`, 1), 2, export.ErrFormat},
		"hash upper case":             {lines[0] + strings.Replace(lines[1], `"h":"01`, `"h":"0A`, 1), 2, journal.ErrMalformedID},
		"body not base64":             {lines[0] + strings.Replace(lines[1], `"b":"`, `"b":"*`, 1), 2, export.ErrFormat},
		"text behind":                 {lines[0] + strings.Replace(lines[1], "}\n", "} \n", 1), 2, export.ErrFormat},
		"cut in a line":               {good[:len(good)-3], 4, io.ErrUnexpectedEOF},
		"no end of line":              {good[:len(good)-1], 4, io.ErrUnexpectedEOF},
		"line too long":               {good + long, 5, export.ErrTooLong},
		"an output behind an entry":   {lines[0] + lines[1] + beside[2], 3, export.ErrFormat},
		"an output before any header": {beside[2], 1, export.ErrFormat},
		"an output with text behind":  {lines[0] + strings.Replace(beside[2], "}\n", "} \n", 1), 2, export.ErrFormat},
		"an output without a digest":  {lines[0] + strings.Replace(beside[2], `{"o":"05`, `{"o":"5`, 1), 2, export.ErrFormat},
		"a definition not in base64":  {lines[0] + strings.Replace(beside[1], `"b":"`, `"b":"*`, 1), 2, export.ErrFormat},
		"zero chain named":            {lines[0] + strings.Replace(lines[1], `{"s"`, `{"c":"`+journal.GUID{}.String()+`","s"`, 1), 2, export.ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := export.NewReader(strings.NewReader(c.in))
			_, _, err := readAll(r)
			var at *export.LineError
			require.ErrorAs(t, err, &at)
			require.Equal(t, c.line, at.Line, err.Error())
			require.ErrorIs(t, err, c.err)
			_, again := r.Next()
			require.Equal(t, err, again)
		})
	}
}

// A read error is not the end of the file.
func TestExportReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	in := io.MultiReader(bytes.NewReader(file(t, 1)), iotest.ErrReader(broken))
	_, _, err := readAll(export.NewReader(in))
	require.ErrorIs(t, err, broken)
}

func TestExportWriterRefuses(t *testing.T) {
	t.Parallel()
	w := export.NewWriter(io.Discard)
	require.ErrorIs(t, w.Write(records(journal.JobID{1})[0]), export.ErrOrder)
	require.ErrorIs(t, w.Attachment(beside(journal.JobID{1})[0]), export.ErrOrder)
	h := header(1)
	h.Key = strings.Repeat("k", export.MaxKey+1)
	require.ErrorIs(t, w.Begin(h), export.ErrTooLong)
	require.NoError(t, w.Begin(header(1)))
	require.ErrorIs(t, w.Write(records(journal.JobID{2})[0]), export.ErrOrder)
	require.ErrorIs(t, w.Write(journal.Record{Seq: 1, Body: make([]byte, journal.MaxEntryBytes+1)}), export.ErrTooLong)
	require.ErrorIs(t, w.Attachment(journal.Attachment{Body: make([]byte, journal.MaxEntryBytes+1)}), export.ErrTooLong)
	require.NoError(t, w.Write(journal.Record{Seq: 1, Body: make([]byte, journal.MaxEntryBytes)}))
	require.ErrorIs(t, w.Attachment(beside(journal.JobID{1})[0]), export.ErrOrder, "behind an entry")
}

// FuzzRead: whatever is read is written back to the same bytes. Anything else is refused, nothing
// panics, and an error names its line.
func FuzzRead(f *testing.F) {
	f.Add(file(f, 1)[:600])
	var small bytes.Buffer
	w := export.NewWriter(&small)
	require.NoError(f, w.Begin(header(4)))
	require.NoError(f, w.Attachment(beside(header(4).Job)[0]))
	require.NoError(f, w.Attachment(beside(header(4).Job)[2]))
	require.NoError(f, w.Write(records(header(4).Job)[0]))
	require.NoError(f, w.Write(records(header(4).Job)[2]))
	require.NoError(f, w.Flush())
	f.Add(small.Bytes())
	f.Add(bytes.Replace(small.Bytes(), []byte(`,"`), []byte(`, "`), 1))
	f.Fuzz(func(t *testing.T, in []byte) {
		headers, asides, recs, err := readBoth(export.NewReader(bytes.NewReader(in)))
		if err != nil {
			var place *export.LineError
			require.ErrorAs(t, err, &place)
			require.True(t, place.Line >= 1 && place.Line <= 1+bytes.Count(in, []byte("\n")), "line %d", place.Line)
			return
		}
		var out bytes.Buffer
		w := export.NewWriter(&out)
		for i, h := range headers {
			require.NoError(t, w.Begin(h))
			for _, x := range asides[i] {
				require.NoError(t, w.Attachment(x))
			}
			for _, rec := range recs[i] {
				require.NoError(t, w.Write(rec))
			}
		}
		require.NoError(t, w.Flush())
		require.Equal(t, string(in), out.String())
	})
}
