package sim

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/archive"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
)

// prime is FNV's, of 64 bits.
const prime = 1099511628211

// trace is the record of what happened: its hash, and for a failed run its lines.
type trace struct {
	hash uint64
	keep bool
	text strings.Builder
}

// note adds a line to the trace. Only the simulator calls it, never a process.
func (w *world) note(words ...string) {
	h := w.trace.hash*prime + uint64(time.Since(w.begun))
	for _, word := range words {
		for i := range len(word) {
			h = (h ^ uint64(word[i])) * prime
		}
		h = h*prime + 1
	}
	w.trace.hash = h
	if w.trace.keep {
		fmt.Fprintf(&w.trace.text, "%6d %9.3fs %s\n", w.steps, time.Since(w.begun).Seconds(), strings.Join(words, " "))
	}
}

// report runs a seed again with a log, and keeps its record. bad says what was wrong in the first
// run.
func report(t *testing.T, seed uint64, bad []string) {
	t.Helper()
	w := play(t, seed, true)
	dir, err := os.MkdirTemp("", fmt.Sprintf("quipu-sim-%d-", seed))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"messages.log": w.trace.text.String(), "flows.yaml": strings.Join(w.plan.texts, "---\n"),
		"wrong.txt": fmt.Sprintf("%s\nweather %+v\n", strings.Join(w.wrongs, "\n"), w.weather),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.export(filepath.Join(dir, "journal.jsonl")); err != nil {
		t.Error(err)
	}
	if len(w.wrongs) != len(bad) {
		t.Errorf("seed %d is not deterministic: first was wrong %q, then %q", seed, bad, w.wrongs)
	}
	if len(w.wrongs) == 0 {
		t.Logf("seed %d is well; its log, flows and journals are in %s", seed, dir)
		return
	}
	t.Errorf("seed %d: %s\nlog, flows and journals are in %s\nreplay: go test ./engine/sim -seed=%d", seed, strings.Join(w.wrongs, "\n"), dir, seed)
}

// export writes the journals of all jobs, for journal-verify.
func (w *world) export(name string) error {
	return archive.WriteFile(name, func(to io.Writer) error {
		out := export.NewWriter(to)
		for _, v := range w.views() {
			if v.State == journal.JobExpired {
				continue // its journal was removed
			}
			w.audit(v.ID, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
				h, _ := s.Replay()
				return out.Job(export.Header{
					Space: h.Space, Job: h.Job, Generation: h.Generation, Key: h.Key, Head: h.Head, Flow: h.Flow,
				}, s.Attachments, entries)
			})
		}
		return out.Flush()
	})
}
