package model

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// compiled are the flows that were read from the store, by their digests.
var compiled sync.Map

func (w *world) flowOf(v *store.JobView) *flow.Flow {
	if f, ok := compiled.Load(v.Flow.Digest); ok {
		return f.(*flow.Flow)
	}
	text := must(func() ([]byte, error) { return w.store.Flow(context.Background(), v.Flow.Name, v.Flow.Version) })
	f, err := flow.FromCanonical(text)
	if err != nil {
		panic(err)
	}
	compiled.Store(v.Flow.Digest, f)
	return f
}

// explained holds what is said of a job at any time to what is open of it (5.3):
// nothing is unknown, each open instance has its sentence, and a join that waits
// names what it misses.
func (w *world) explained(v *store.JobView) {
	f := w.flowOf(v)
	told := map[collation.InstanceKey]bool{}
	for _, r := range explain.Why(&explain.Job{View: v, Flow: f, Now: collation.Micros(time.Now().UnixMicro())}) {
		told[collation.InstanceKey{Activity: r.Activity, DAD: collation.DAD(r.Address)}] = true
		if r.Kind == string(explain.KindUnknown) || r.Kind == string(explain.KindJoin) && !strings.Contains(r.Text, "missing") {
			w.wrong("why of job %s: %s", v.Key, r.Text)
		}
	}
	if v.State != journal.JobOpen {
		return
	}
	for _, i := range v.Instances {
		act, _ := f.Activity(i.Key.Activity)
		open := i.Ledger.State() == 0 && i.Ledger.Leg1Entries() > 0 && !act.Pivot && act.Type != flow.TypeCycle
		if open && !told[i.Key] {
			w.wrong("why of job %s says nothing of %s at %s, %s", v.Key, i.Key.Activity, i.Key.DAD, i.Ledger)
		}
	}
}
