package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// tellEvery is how often the demo says what it is still doing.
const tellEvery = 3 * time.Second

// teller says what the demo does, and as long as a step goes on says so again: the demo
// is never silent for long, whatever takes its time.
type teller struct {
	w     io.Writer
	begun time.Time

	mu       sync.Mutex
	timer    *time.Timer
	doing    string // "" when there is nothing more to tell
	progress string // how far the step has come
}

func tell(w io.Writer) *teller {
	t := &teller{w: w, begun: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(tellEvery, t.again)
	return t
}

// step says what begins.
func (t *teller) step(format string, a ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing, t.progress = fmt.Sprintf(format, a...), "still at it"
	t.line(t.doing)
}

// count notes how far the step has come, for the next time that it is told.
func (t *teller) count(have, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = fmt.Sprintf("%d of %d", have, all)
}

// end ends the telling.
func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.doing = ""
}

func (t *teller) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doing != "" {
		t.line(t.doing + ": " + t.progress)
	}
}

// line writes a line, and sees to the next one.
func (t *teller) line(text string) {
	fmt.Fprintf(t.w, "[%5.1fs] %s\n", time.Since(t.begun).Seconds(), text)
	t.timer.Reset(tellEvery)
}
