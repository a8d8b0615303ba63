package durable

import (
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// walk is one run of a durable function, from its top.
type walk struct {
	rows    effect.Rows // of the function
	cause   []byte      // why the function is undone
	undoing bool
	undone  effect.Rows   // compensations that this request has run for the Original
	waited  []store.Pause // earlier pauses, among them those between failed compensations

	main   *branch // the function's own
	result []byte  // of the function, once main has ended
	err    error
	stand  *stand // nil: the function does not stand at its waits

	mu      sync.Mutex
	holder  *branch   // has the baton
	line    []*branch // waits for the baton
	held    []*branch // wait to go outside when no other branch goes on
	abroad  int       // branches that are outside
	missed  *record   // see hold
	live    int       // branches that have not ended
	idle    chan struct{}
	history *history
	calls   int // calls so far, refused ones included
	forked  int // branches so far
	lost    []string
	asked   map[pauseID]string // the latest position that asked for the pause
	named   []named
	size    int                      // bytes of named
	version map[versionID]int        // given out in this run
	undos   map[journal.Digest]*undo // registered in this run
	given   bool                     // every branch stops at its next call
}

// named is a pause that a branch waits for.
type named struct {
	by *branch
	wire.Pause
}

func newWalk(recorded []store.EffectRow, pauses []store.Pause) *walk {
	return &walk{
		rows: effect.NewRows(recorded), history: newHistory(recorded, pauses),
		asked: make(map[pauseID]string), version: make(map[versionID]int), undos: make(map[journal.Digest]*undo),
	}
}

// quiet waits until all branches have ended, at most for grace.
func (w *walk) quiet(grace time.Duration) {
	w.mu.Lock()
	if w.live == 0 {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(grace):
	}
}
