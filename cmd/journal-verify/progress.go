package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// total is the amount of work, as far as it is known: bytes of files, or jobs of a database. 0
// means unknown.
type total struct{ bytes, jobs int64 }

// progress draws a bar while the work goes on. A nil progress draws nothing. It is safe for
// concurrent use.
type progress struct {
	of                      total
	nBytes, nJobs, nEntries atomic.Int64

	mu    sync.Mutex // guards the terminal
	out   io.Writer
	drawn bool
	begun time.Time
	quit  chan struct{}
	done  sync.WaitGroup
}

const (
	redraw   = 100 * time.Millisecond
	barWidth = 30
)

// newProgress starts a bar if the writer is a terminal.
func newProgress(out io.Writer, of total, quiet bool) *progress {
	f, ok := out.(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return startProgress(out, of)
}

func startProgress(out io.Writer, of total) *progress {
	p := &progress{of: of, out: out, begun: time.Now(), quit: make(chan struct{})}
	p.done.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.draw()
			case <-p.quit:
				return
			}
		}
	})
	return p
}

func (p *progress) bytes(n int) {
	if p != nil {
		p.nBytes.Add(int64(n))
	}
}

func (p *progress) entries(n int) {
	if p != nil {
		p.nEntries.Add(int64(n))
	}
}

func (p *progress) job() {
	if p != nil {
		p.nJobs.Add(1)
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, "\r\x1b[K", p.line(time.Since(p.begun)))
	p.drawn = true
}

// line returns the bar after that time.
func (p *progress) line(after time.Duration) string {
	done, of := p.nBytes.Load(), p.of.bytes
	if of == 0 {
		done, of = p.nJobs.Load(), p.of.jobs
	}
	bar := ""
	if of > 0 {
		part := min(float64(done)/float64(of), 1)
		full := int(part * barWidth)
		bar = fmt.Sprintf("[%s%s] %3.0f %%  ", strings.Repeat("#", full), strings.Repeat("·", barWidth-full), part*100)
	}
	entries := p.nEntries.Load()
	return fmt.Sprintf("%s%s, %s, %.0f entries/s", bar, counted(p.nJobs.Load(), "job", "jobs"), counted(entries, "entry", "entries"),
		float64(entries)/max(after.Seconds(), 0.001))
}

// pause clears the line for a result; the next tick draws it again.
func (p *progress) pause() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// stop stops drawing and clears the line.
func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.quit)
	p.done.Wait()
	p.pause()
}

type progressKey struct{}

// withProgress passes the bar to units.
func withProgress(ctx context.Context, p *progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

func progressOf(ctx context.Context) *progress {
	p, _ := ctx.Value(progressKey{}).(*progress)
	return p
}
