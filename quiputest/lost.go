package quiputest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// winners are the recorded winners of workers.First, by request and position. How far losing
// branches come is undefined.
type winners map[journal.GUID]map[string]int

// firstName is the name under which workers.First is recorded.
const firstName = "first"

// add records the winners among the effects of a job.
func (w winners) add(all []store.JobEffect) {
	for i := range all {
		e := &all[i]
		var branch int
		if e.Name != firstName || e.Class != string(effects.Pure) || e.Position == "" ||
			json.Unmarshal(e.Result, &branch) != nil {
			continue
		}
		if w[e.Request] == nil {
			w[e.Request] = map[string]int{}
		}
		w[e.Request][e.Position] = branch
	}
}

// lost says that a position lies in a branch that lost. For example, 2.1.3 is the third call in
// branch 1 of the call at 2.
func (w winners) lost(request journal.GUID, position string) bool {
	steps := strings.Split(position, ".")
	for n := 1; n+1 < len(steps); n += 2 {
		winner, first := w[request][strings.Join(steps[:n], ".")]
		if first && steps[n] != strconv.Itoa(winner) {
			return true
		}
	}
	return false
}

// winners returns the winners in all jobs.
func (w *World) winners() winners {
	w.t.Helper()
	out := winners{}
	for _, j := range w.Jobs() {
		out.add(j.effects())
	}
	return out
}

// undone returns the request whose compensations the job runs, zero for another job.
func undone(v *store.JobView) journal.GUID {
	if v.Flow.Name != flow.UndoName || v.Parent == nil {
		return journal.GUID{}
	}
	return v.Parent.Leg1
}

// lostJob says that a losing branch started the job or an ancestor of it.
func (w *World) lostJob(won winners, v *store.JobView) bool {
	ctx := context.Background()
	for v.Parent != nil {
		if won.lost(v.Parent.Leg1, w.pauseOf(v).Position) {
			return true
		}
		parent, err := w.store.Job(ctx, v.Parent.Job)
		if err != nil {
			return false
		}
		v = parent
	}
	return false
}
