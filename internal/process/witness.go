package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

const (
	// lateMark is how late an engine can leave a mark, at most: its look takes watchTime, and so does
	// that of who reads it. An older one was published again by somebody else.
	lateMark = 2 * watchTime
	// strangeMark is how long a mark that does not verify is kept for processes that may have its key:
	// by then each has read a new one.
	strangeMark = keyring.Grace
	// witnessAgain is the shortest time between two log lines about the marks in NATS.
	witnessAgain = 10 * time.Minute
)

// leftMark is a mark of the database that somebody has left in NATS. Only those without an Err count.
type leftMark struct {
	nats.Attestation

	mark store.Mark
}

// marks are those that NATS has, in the order in which they were left.
func (p *Process) marks(ctx context.Context) ([]leftMark, error) {
	if p.Bus == nil {
		return nil, nil
	}
	all, err := p.Bus.Witness(ctx)
	left := make([]leftMark, len(all))
	for i, a := range all {
		if left[i].Attestation = a; a.Err == nil {
			left[i].mark, left[i].Err = store.ParseMark(a.Text)
		}
	}
	return left, err
}

// newestMark is the index of the newest mark of the space, whatever was left after it; -1: there is none.
func newestMark(left []leftMark, space journal.GUID) int {
	at := -1
	for i, m := range left {
		if m.Err == nil && m.mark.Space == space && (at < 0 || m.mark.After(left[at].mark)) {
			at = i
		}
	}
	return at
}

// Witness is the newest mark of the space that NATS has; zero for none. foreign says why another one that
// is there is none of the space; nil: all are.
func (p *Process) Witness(ctx context.Context) (newest store.Mark, foreign, err error) {
	left, err := p.marks(ctx)
	if err != nil {
		return newest, nil, err
	}
	if at := newestMark(left, p.Keys.Ring().Space()); at >= 0 {
		newest = left[at].mark
	}
	if at := slices.IndexFunc(left, func(m leftMark) bool { return m.Err != nil }); at >= 0 {
		foreign = fmt.Errorf("the witness is not the space's: %w", left[at].Err)
	}
	return newest, foreign, nil
}

// outgrown are the numbers of the marks that nobody needs beside a newer one: those that are not newer
// than it, and those that have not verified for so long.
func outgrown(left []leftMark, newer store.Mark, strange time.Duration) (seqs []uint64) {
	for _, m := range left {
		if m.Err == nil && !m.mark.After(newer) || m.Err != nil && m.Age >= strange {
			seqs = append(seqs, m.Seq)
		}
	}
	return seqs
}

// attest leaves the mark in NATS beside those that are there. Those that it outgrows are taken away once
// it stands. So the newest is there at every moment, whatever other engines do.
func (p *Process) attest(ctx context.Context, mark store.Mark, left []leftMark) error {
	err := p.Bus.Attest(ctx, mark.String())
	if errors.Is(err, nats.ErrWitnessFull) {
		if at := newestMark(left, mark.Space); at >= 0 {
			newest := left[at].mark
			left = slices.Delete(slices.Clone(left), at, at+1)
			err = errors.Join(err, p.Bus.Retract(ctx, outgrown(left, newest, 0)...))
		} else {
			err = errors.Join(err, p.Bus.Retract(ctx, outgrown(left, mark, 0)...))
		}
		if again := p.Bus.Attest(ctx, mark.String()); again == nil {
			return nil // the rest is taken away with the next one
		}
	}
	if err == nil {
		err = p.Bus.Retract(ctx, outgrown(left, mark, strangeMark)...)
	}
	return err
}

// marksSeen are what a process remembers of the marks in NATS, to know those of strangers.
type marksSeen struct {
	seqs    []uint64   // those of the last look
	settled store.Mark // the newest of lateMark ago, or of longer ago
	recent  store.Mark // the newest at the time since
	since   time.Time
	// told and failed are when the log had a line about those of strangers, and about one that could not be left.
	told, failed time.Time
}

// settle remembers the newest mark.
func (s *marksSeen) settle(newest store.Mark, now time.Time) {
	if now.Sub(s.since) >= lateMark {
		s.settled, s.recent, s.since = s.recent, newest, now
	}
}

// strangers returns the marks that were published since the last look, and by no engine of the space:
// they do not verify, or are published again.
func (s *marksSeen) strangers(left []leftMark) (found []leftMark) {
	seqs := make([]uint64, len(left))
	for i, m := range left {
		if seqs[i] = m.Seq; !slices.Contains(s.seqs, m.Seq) && (m.Err != nil || s.settled.After(m.mark)) {
			found = append(found, m)
		}
	}
	s.seqs = seqs
	return found
}

// seldom says whether the log is to have a line again.
func seldom(last *time.Time, now time.Time) bool {
	if !last.IsZero() && now.Sub(*last) < witnessAgain {
		return false
	}
	*last = now
	return true
}

// read reads the marks in NATS, and tells people what strangers have published there.
func (w *watcher) read(ctx context.Context) []leftMark {
	log := w.p.cfg.Logger
	left, err := w.p.marks(ctx)
	if err != nil {
		log.Log(ctx, w.level(ctx, err), "NATS does not say how new the database was", "error", err)
		return nil
	}
	found := w.seen.strangers(left)
	for _, m := range found {
		reason := "old"
		if m.Err != nil {
			reason = refusedBecause(m.Err)
		}
		w.p.cfg.Observer.Count(observer.MetricRefused, 1, "reason", reason)
	}
	if n := len(found); n > 0 && seldom(&w.seen.told, time.Now()) {
		log.Warn("marks of the database in NATS are old, or not the space's, and do nothing: somebody else publishes there (docs/recover.md)",
			"space", w.p.cfg.Space, "marks", n, "last", found[n-1].Text[:min(len(found[n-1].Text), maxStrange)], "error", found[n-1].Err)
	}
	return left
}

// maxStrange bounds what the log has of a stranger's text.
const maxStrange = 100

// leave leaves the mark in NATS. Where that does not work, it is tried again with the next one.
func (w *watcher) leave(ctx context.Context, mark store.Mark, left []leftMark) {
	now := time.Now()
	w.seen.settle(mark, now)
	err := w.p.attest(ctx, mark, left)
	if err == nil {
		w.p.unleft.Store(nil)
		return
	}
	if w.p.Bus.Connected() && ctx.Err() == nil { // otherwise that is the trouble
		t := &store.Trouble{
			Kind: health.KindWitness, Name: "mark", Since: collation.Micros(now.UnixMicro()),
			Text: "NATS does not store how new the database is, so that an older copy of it would not be noticed", Cause: wire.CutTextTo(err.Error(), maxCause),
		}
		if before := w.p.unleft.Load(); before != nil {
			t.Since = before.Since
		}
		w.p.unleft.Store(t)
	}
	level := slog.LevelDebug
	passes := errors.Is(err, transport.ErrUnavailable) && !errors.Is(err, nats.ErrWitnessFull)
	if !passes && ctx.Err() == nil && seldom(&w.seen.failed, now) {
		level = slog.LevelWarn
	}
	w.p.cfg.Logger.Log(ctx, level, "how new the database is could not be left in NATS; it is tried again", "error", err)
}
