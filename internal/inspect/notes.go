package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Note is why a job of a list failed, or what it waits for, in a few words.
type Note struct {
	Text string
	Bad  bool // it failed, or it does not go on by itself
}

// Notes says of the jobs of a page, at most store.MaxOutcomes, why they failed or what they wait for, with
// as many questions to the database for one job as for all. A job of which nothing can be said has no note.
func (r *Reader) Notes(ctx context.Context, jobs []view.Summary) (map[journal.JobID]Note, error) {
	notes := map[journal.JobID]Note{}
	var ended, open []journal.JobID
	for i := range jobs {
		switch j := &jobs[i]; j.State {
		case journal.JobFailed, journal.JobInterrupted:
			ended = append(ended, j.ID)
		case journal.JobOpen:
			open = append(open, j.ID)
		case journal.JobQuarantined:
			notes[j.ID] = Note{"its stored state is against the laws: nothing of it goes on", true}
		}
	}
	if len(ended) > 0 {
		outcomes, err := r.Outcomes(ctx, ended)
		if err != nil {
			return nil, err
		}
		for i := range jobs {
			j := &jobs[i]
			if o := outcomes[j.ID]; o.Error != nil {
				text := cmp.Or(r.overtime(ctx, j, o.Error), line(o.Error.Message), o.Error.Class, fmt.Sprint("code ", o.Code))
				notes[j.ID] = Note{text, o.State == journal.JobFailed}
			}
		}
	}
	if len(open) == 0 {
		return notes, nil
	}
	return notes, r.openNotes(ctx, open, notes)
}

// Annotate gives the jobs of a list their notes.
func (r *Reader) Annotate(ctx context.Context, jobs []view.Summary) error {
	for part := range slices.Chunk(jobs, store.MaxOutcomes) {
		notes, err := r.Notes(ctx, part)
		if err != nil {
			return err
		}
		for i := range part {
			part[i].Note = notes[part[i].ID].Text
		}
	}
	return nil
}

// overtime says of a job that took its time what its attempts have, where the error does not say more than
// that it was over: the activity is named where only one has such a limit. "": the error says more.
func (r *Reader) overtime(ctx context.Context, j *view.Summary, f *journal.Failure) string {
	if f.Class != wire.ClassTimeout || line(f.Message) != context.DeadlineExceeded.Error() {
		return ""
	}
	var limited []*flow.Activity
	if d := r.Definition(ctx, j.Flow, j.Version); d != nil {
		for _, a := range d.Activities() {
			if a.Timeout > 0 {
				limited = append(limited, a)
			}
		}
	}
	if len(limited) != 1 {
		return "an attempt took longer than its timeout"
	}
	return explain.Timeout(limited[0])
}

// line is the first line of a text.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return text
}

// openNotes adds the notes of open jobs. What waits for a person is told by its dead letter.
func (r *Reader) openNotes(ctx context.Context, open []journal.JobID, notes map[journal.JobID]Note) error {
	awaited, err := r.Awaited(ctx, open)
	if err != nil {
		return err
	}
	served, err := r.served(ctx, awaited)
	if err != nil {
		return err
	}
	for id, all := range awaited {
		notes[id] = noteOf(all, served)
	}
	letters, err := r.DeadLetters(ctx, store.DeadFilter{Jobs: open, Limit: store.MaxPage})
	for i := range letters {
		d := &letters[i]
		text := "waits for a decision: " + cmp.Or(line(d.Letter.Message), d.Letter.Reason)
		if d.Letter.Activity != "" {
			text = d.Letter.Activity + ": " + text
		}
		notes[d.Letter.Job] = Note{text, true}
	}
	return err
}

// served says of the topics that jobs wait for whether somebody takes their requests, as far as that can
// be seen.
func (r *Reader) served(ctx context.Context, awaited map[journal.JobID][]store.Awaited) (map[string]bool, error) {
	living, err := r.Processes(ctx)
	if err != nil {
		return nil, err
	}
	served := map[string]bool{"": true}
	for i := range living {
		for _, topic := range living[i].Topics {
			served[topic] = true
		}
	}
	var elsewhere func(topic string) (is, seen bool)
	for _, all := range awaited {
		for i := range all {
			x := &all[i]
			if _, known := served[x.Topic]; known || x.What != store.WaitsTopic {
				continue
			}
			if elsewhere == nil && r.elsewhere != nil { // it is asked once, when it is needed
				elsewhere = r.elsewhere(ctx)
			}
			if elsewhere != nil {
				is, seen := elsewhere(x.Topic)
				served[x.Topic] = is || !seen
			}
		}
	}
	return served, nil
}

// first is what a person has to know first of what a job waits for.
var first = []string{
	store.WaitsPerson, store.WaitsEffect, store.WaitsTopic, store.WaitsSignal, store.WaitsChild, store.WaitsTimer, "",
}

// noteOf names the most urgent of the things that a job waits for, and counts the others.
func noteOf(all []store.Awaited, served map[string]bool) Note {
	rank := func(x *store.Awaited) int {
		if x.Lost >= explain.ManyLost {
			return 0
		}
		if served, known := served[x.Topic]; x.What == store.WaitsTopic && known && !served {
			return 0
		}
		return 1 + slices.Index(first, x.What)
	}
	slices.SortStableFunc(all, func(a, b store.Awaited) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Attempt, a.Attempt),
			cmp.Compare(a.Activity, b.Activity))
	})
	x, more := &all[0], int64(0)
	for i := range all[1:] {
		if other := &all[1+i]; other.Activity != x.Activity { // a hook may wait for a signal, and for its time
			more += other.N
		}
	}
	if x.N > 1 {
		more += x.N - 1
	}
	note := Note{awaits(x, rank(x) == 0), rank(x) == 0 || x.What == store.WaitsPerson}
	if x.Activity != "" {
		note.Text = x.Activity + ": " + note.Text
	}
	if more > 0 {
		note.Text += fmt.Sprintf(", and %d more", more)
	}
	return note
}

// awaits is what a job waits for, in a few words.
func awaits(x *store.Awaited, nobody bool) string {
	attempt := ""
	if x.Attempt > 1 {
		attempt = fmt.Sprintf(", attempt %d", x.Attempt)
	}
	switch {
	case x.Lost >= explain.ManyLost:
		return fmt.Sprintf("its runs end with their process: %d so far", x.Lost)
	case nobody:
		return "nobody serves " + x.Topic
	case x.What == store.WaitsPerson:
		return "waits for a decision"
	case x.What == store.WaitsEffect:
		return fmt.Sprintf("effect %s was cut off with %s; its outcome is decided at %s", x.Topic, x.Holder, clock(x.Due))
	case x.What == store.WaitsTopic && x.Holder != "":
		return "runs at " + x.Holder + attempt
	case x.What == store.WaitsTopic:
		return "waits for a worker of " + x.Topic + attempt
	case x.What == store.WaitsSignal:
		return fmt.Sprintf("waits for signal %s with key %q", x.Topic, x.Key)
	case x.What == store.WaitsChild:
		return "waits for a job that it started"
	case x.What == store.WaitsTimer:
		if x.Due > 0 {
			return "sleeps until " + clock(x.Due)
		}
		return "sleeps"
	}
	return "its next message is on its way"
}

// clock is a time in a note.
func clock(at collation.Micros) string { return timeOf(at).UTC().Format("2006-01-02 15:04:05 MST") }
