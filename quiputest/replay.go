package quiputest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/workers"
)

// ReplayOption changes ReplayJournal.
type ReplayOption func(*replayer)

// Flows names files (filepath.Glob) with the flows of the jobs in the journals, since a handler's
// input follows from the flow. Jobs of Runtime.Call and World.Call need none.
func Flows(patterns ...string) ReplayOption {
	return func(r *replayer) { r.patterns = append(r.patterns, patterns...) }
}

// SameAnswers also checks that a request which a worker ended gets the same answer now.
func SameAnswers() ReplayOption { return func(r *replayer) { r.same = true } }

// ReplayJournal checks new code against journals of old code, which `quipu export` or
// World.Export wrote to a file, or to the *.jsonl files of a directory. It runs each request of
// the topics that register adds handlers for against its recorded effects and pauses, and calls
// nothing outside (J12). The test fails if a handler takes another path than the recorded one,
// with the first difference (E15), if a handler panics, if a journal breaks a law, or if there
// was nothing to replay.
func ReplayJournal(t testing.TB, source string, register func(*workers.Registry), options ...ReplayOption) {
	t.Helper()
	r := &replayer{t: t, reg: workers.New(), flows: map[journal.Digest]*flow.Flow{}}
	register(r.reg)
	for _, o := range options {
		o(r)
	}
	if err := r.compile(); err != nil {
		t.Fatalf("replay: %v", err)
	}
	names := []string{source}
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		names, _ = filepath.Glob(filepath.Join(source, "*.jsonl")) // the pattern is valid
	}
	for _, name := range names {
		if err := r.file(name); err != nil {
			t.Errorf("replay %s: %v", name, err)
		}
	}
	t.Logf("%d requests of %d jobs in %d files were replayed", r.requests, r.jobs, len(names))
	if r.requests == 0 && !t.Failed() {
		t.Errorf("replay %s: nothing was replayed: no job asked for one of the topics %v", source, r.reg.Topics())
	}
}

type replayer struct {
	t        testing.TB
	reg      *workers.Registry
	patterns []string
	flows    map[journal.Digest]*flow.Flow
	same     bool

	jobs, requests int
}

// compile reads the flows of the option Flows.
func (r *replayer) compile() error {
	for _, pattern := range r.patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			return fmt.Errorf("flows %s: no such file", pattern)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			f, err := flow.Parse(name, text)
			if err != nil {
				return err
			}
			r.flows[journal.Digest(f.Digest())] = f
		}
	}
	return nil
}

// file replays the jobs of one file.
func (r *replayer) file(name string) error {
	r.t.Helper()
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	in := export.NewReader(file)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err := readRecord(h, in.Entries())
		if err == nil {
			err = r.job(rec)
		}
		if err != nil {
			r.t.Errorf("%s: job %q: %v", name, h.Key, err)
		}
	}
}

// job replays the requests of one job.
func (r *replayer) job(rec *record) error {
	r.t.Helper()
	ref := rec.entries[0].Flow
	if ref == nil {
		return errors.New("its first entry names no flow")
	}
	if ref.Name == flow.UndoName {
		return nil // compensations are replayed with the function that registered them
	}
	rec.flow = r.flows[ref.Digest]
	if rec.flow == nil && flow.IsBuiltin(ref.Name) {
		rec.flow, _ = flow.Builtin(ref.Name, ref.Version) // a flow of another build has another digest
	}
	if rec.flow == nil || journal.Digest(rec.flow.Digest()) != ref.Digest {
		return fmt.Errorf("flow %s version %s with digest %s is not known: name its file with quiputest.Flows", ref.Name, ref.Version, ref.Digest)
	}
	requests, err := rec.requests(r.reg.Topics())
	if err != nil || len(requests) == 0 {
		return err
	}
	r.jobs++
	for _, q := range requests {
		r.requests++
		if err := r.request(q); err != nil {
			c := &q.Request
			r.t.Errorf("job %q, %s, topic %s: %v", c.Key, instance(c.Activity, c.DAD, c.Element), c.Topic, err)
		}
	}
	return nil
}

// request replays one request.
func (r *replayer) request(q *asked) error {
	got, err := work.Replay(context.Background(), r.reg, q.ReplayRequest)
	switch {
	case err != nil:
		return err
	case got.End == work.ReplayDiverged:
		return got.Err
	case got.Response != nil && got.Response.Error != nil && got.Response.Error.Class == wire.ClassPanic:
		return fmt.Errorf("%s\n%s", got.Response.Error.Message, got.Response.Error.Stack)
	case r.same && q.answer != nil:
		return answeredSame(q.answer, got)
	}
	return nil
}

// answeredSame compares a response with the recorded one.
func answeredSame(was *journal.Response, got *work.Replayed) error {
	if got.Response == nil || got.Response.Kind != journal.ResponseTerminal {
		return fmt.Errorf("it was answered with code %d, and is not now: it is %s", was.Code, got.End)
	}
	now, err := got.Response.Journal()
	if err != nil {
		return err
	}
	output := func(r *journal.Response) []byte {
		if r.Output == nil && !r.Ref.IsZero() {
			return r.Ref[:]
		}
		return r.Output
	}
	a, b := output(was), output(now)
	if !was.Ref.IsZero() { // an output stored beside the entry has only its digest there
		sum := sha256.Sum256(b)
		b = sum[:]
	}
	same := was.Code == now.Code && bytes.Equal(a, b) && (was.Error == nil) == (now.Error == nil)
	if same && was.Error != nil {
		same = was.Error.Class == now.Error.Class && was.Error.Message == now.Error.Message
	}
	if !same {
		return fmt.Errorf("it is answered otherwise: %s\n  recorded: %s", answerText(now), answerText(was))
	}
	return nil
}

func answerText(r *journal.Response) string {
	if r.Error != nil {
		return fmt.Sprintf("code %d (%s): %s", r.Code, r.Error.Class, r.Error.Message)
	}
	return fmt.Sprintf("code %d with output %s", r.Code, r.Output)
}
