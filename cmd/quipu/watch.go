package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// lookWatch is the least pause between two looks of --watch and of top. A look that takes long
// makes the pause longer, so that watching takes at most a tenth of the time.
const lookWatch = time.Second

// every looks again and again until ctx ends or a look fails. A database that goes away after the
// first look is waited for.
func (a *app) every(ctx context.Context, look func() error) error {
	for first, away := true, false; ; first = false {
		began := time.Now()
		err := look()
		switch {
		case err == nil:
			away = false
		case first || ctx.Err() != nil || !errors.Is(err, quipu.ErrUnavailable):
			return err
		case !away:
			away = true
			fmt.Fprintln(a.streams.Err, "waiting:", plain(err.Error()))
		}
		if err := rest(ctx, max(lookWatch, 10*time.Since(began))); err != nil {
			return err
		}
	}
}

// watch shows the newest jobs that fit a filter until ctx ends.
func (a *app) watch(ctx context.Context, from source, f quipu.JobFilter, o *lsOptions) error {
	f.Limit = o.limit
	show := a.lines(o.keysOnly)
	if cli.Terminal(a.streams.Out) && !a.json() && !o.keysOnly {
		show = a.frames()
	}
	return a.every(ctx, func() error {
		page, err := from.Jobs(ctx, f)
		if err == nil && !o.keysOnly {
			err = from.Annotate(ctx, page.Jobs)
		}
		if err != nil {
			return err
		}
		return show(page.Jobs)
	})
}

// frames returns a function that draws a page of jobs over the one before.
func (a *app) frames() func([]view.Summary) error {
	s := &screen{w: a.streams.Out}
	return func(page []view.Summary) error {
		return s.draw(func(w io.Writer) error {
			fmt.Fprintf(w, "%s  %s  %s\n", time.Now().Format(time.DateTime), a.spaceName(), counted(len(page), "job"))
			t := jobsTable(w)
			for i := range page {
				t.row(jobCells(&page[i])...)
			}
			return t.flush()
		})
	}
}

// lines returns a function that adds a line for each job that is new or has another state, the
// oldest first.
func (a *app) lines(keysOnly bool) func([]view.Summary) error {
	t := jobsTable(a.streams.Out)
	t.w = tabwriter.NewWriter(a.streams.Out, 12, 0, 2, ' ', 0) // about the same columns each time
	var told told
	return func(page []view.Summary) error {
		for _, j := range slices.Backward(page) {
			if told.before(j.ID, j.State) {
				continue
			}
			if err := a.listed(t, &j, keysOnly); err != nil {
				return err
			}
		}
		return t.flush()
	}
}

// maxTold bounds what is remembered: at least the last maxTold jobs, at most twice as many.
const maxTold = 10 * store.MaxPage

// told remembers the states of jobs that were printed.
type told struct {
	last, older map[journal.JobID]journal.JobState
}

// before says whether the job was printed with this state last, and remembers it.
func (t *told) before(id journal.JobID, state journal.JobState) bool {
	was, ok := t.last[id]
	if !ok {
		was = t.older[id]
		if t.last == nil || len(t.last) >= maxTold {
			t.last, t.older = map[journal.JobID]journal.JobState{}, t.last
		}
	}
	t.last[id] = state
	return was == state
}

// screen draws frames on a terminal, each over the one before.
type screen struct {
	w     io.Writer
	drawn bool
}

// canvas takes what is drawn on a terminal.
type canvas struct{ strings.Builder }

// draw draws what frame writes, cut to the size of the terminal.
func (s *screen) draw(frame func(io.Writer) error) error {
	var text canvas
	var out strings.Builder
	if err := frame(&text); err != nil {
		return err
	}
	if !s.drawn {
		out.WriteString("\x1b[2J") // clear
		s.drawn = true
	}
	out.WriteString("\x1b[H") // go to the top
	width, height := cli.Size(s.w)
	for line := range strings.Lines(text.String()) {
		if height--; height == 0 { // the last line is for the cursor
			break
		}
		if runes := []rune(strings.TrimSuffix(line, "\n")); len(runes) > width {
			line = string(runes[:width]) + "\n"
		}
		out.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n") // clear what is left of the line
	}
	out.WriteString("\x1b[J") // clear what is left of the screen
	_, err := io.WriteString(s.w, out.String())
	return err
}
