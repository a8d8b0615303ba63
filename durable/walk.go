package durable

import (
	"sync"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// walk is one run of a durable function, from its top.
type walk struct {
	rows    effects.Rows // of the function
	cause   []byte       // of its failure: it is being undone
	undoing bool
	undone  effects.Rows  // compensations that this request has run for the Original
	waited  []store.Pause // between their failures

	mu      sync.Mutex
	holder  *branch   // of the baton
	line    []*branch // for the baton
	held    []*branch // go outside when nothing else goes on
	abroad  int       // branches that are outside
	missed  *record   // see hold
	live    int       // branches that have not ended
	idle    chan struct{}
	history *history
	calls   int // positions taken, refused ones too
	forked  int // branches
	lost    []string
	asked   map[pauseID]string // the position where it was asked for last; see remembered
	named   []named
	size    int                      // of named, bytes
	version map[versionID]int        // told in this run
	undos   map[journal.Digest]*undo // registered in this run
	given   bool                     // the run was given up: every branch stops at its next call
}

// named is what a branch waits for.
type named struct {
	by *branch
	wire.Pause
}

func newWalk(recorded []store.EffectRow, pauses []store.Pause) *walk {
	return &walk{
		rows: effects.NewRows(recorded), history: newHistory(recorded, pauses),
		asked: make(map[pauseID]string), version: make(map[versionID]int), undos: make(map[journal.Digest]*undo),
	}
}

// quiet waits until all branches have ended, for a while.
func (w *walk) quiet(grace time.Duration) {
	w.mu.Lock()
	if w.live == 0 {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
