package replay_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// features are the facts that the honest families must contain: a fact that no journal contains
// was checked by no law.
var features = map[string]func(e *journal.Entry) bool{
	"elements":                   func(e *journal.Entry) bool { return e.Elements != nil },
	"held elements":              func(e *journal.Entry) bool { return e.Elements != nil && e.Elements.Parallel < e.Elements.Count },
	"an element that ends":       func(e *journal.Entry) bool { return e.Open != nil && *e.Open > 0 },
	"an element released":        func(e *journal.Entry) bool { return e.Open != nil && len(e.Updated) > 0 },
	"gathered elements":          func(e *journal.Entry) bool { return e.Open != nil && *e.Open == 0 && e.Result != nil },
	"a wait":                     func(e *journal.Entry) bool { return len(e.Waits) > 0 },
	"a wait of a repeating hook": func(e *journal.Entry) bool { return len(e.Waits) > 0 && e.Waits[0].Repeat },
	"a folded wait":              func(e *journal.Entry) bool { return len(e.Waits) > 0 && folds(e) },
	"a folded child":             func(e *journal.Entry) bool { return folds(e) && dispatches(e, journal.MessageStart) },
	"a folded join":              func(e *journal.Entry) bool { return folds(e) && arrives(e, true) },
	"a timer":                    func(e *journal.Entry) bool { return dispatches(e, journal.MessageWakeUp) },
	"a bound":                    func(e *journal.Entry) bool { return slices.ContainsFunc(e.Dispatched, isBound) },
	"a signal that wakes":        func(e *journal.Entry) bool { return woken(e, journal.BySignal, journal.ResponseTerminal) },
	"a signal that passes":       func(e *journal.Entry) bool { return woken(e, journal.BySignal, journal.ResponsePass) },
	"a timer that wakes":         func(e *journal.Entry) bool { return woken(e, journal.ByTimer, journal.ResponseTerminal) },
	"a signal with an error":     func(e *journal.Entry) bool { return e.Response != nil && e.Response.By != "" && e.Response.Code == 409 },
	"something cancelled":        func(e *journal.Entry) bool { return len(e.Cancelled) > 0 },
	"two things cancelled":       func(e *journal.Entry) bool { return len(e.Cancelled) > 1 },
	"a child":                    func(e *journal.Entry) bool { return dispatches(e, journal.MessageStart) && e.Kind == journal.KindLeg1 },
	"a child's retry":            func(e *journal.Entry) bool { return dispatches(e, journal.MessageStart) && e.Kind == journal.KindLeg2 },
	"an outcome":                 func(e *journal.Entry) bool { return e.Response != nil && !e.Response.Child.IsZero() },
	"a job with a parent":        func(e *journal.Entry) bool { return e.Parent != nil },
	"an outcome to the parent":   func(e *journal.Entry) bool { return dispatches(e, journal.MessageOutcome) },
	"a signal that leaves":       func(e *journal.Entry) bool { return dispatches(e, journal.MessageSignal) },
	"an interrupt that leaves": func(e *journal.Entry) bool {
		return dispatches(e, journal.MessageInterrupt) && e.Kind == journal.KindLeg1 && !marked(e, journal.MarkClosed)
	},
	"an interrupt that descends": func(e *journal.Entry) bool {
		return dispatches(e, journal.MessageInterrupt) && marked(e, journal.MarkClosed)
	},
	"an interrupt": func(e *journal.Entry) bool { return e.Kind == journal.KindInterrupt },
	"an interrupt that completes": func(e *journal.Entry) bool {
		return e.Kind == journal.KindInterrupt && e.Close != nil && e.Close.State == journal.JobCompleted
	},
	"an own interrupt": func(e *journal.Entry) bool {
		return e.Kind == journal.KindLeg1 && e.Close != nil && e.Close.State == journal.JobInterrupted
	},
	"a cycle": func(e *journal.Entry) bool { return dispatches(e, journal.MessageCycle) },
	"a cycle past its max": func(e *journal.Entry) bool {
		return e.Close != nil && e.Close.Error != nil && e.Close.Error.Class == "cycle"
	},
	"a later pass": func(e *journal.Entry) bool { return strings.Contains(e.DAD, ",1") || strings.Contains(e.DAD, ",2") },
	"category B in one entry": func(e *journal.Entry) bool {
		return e.Kind == journal.KindLeg1 && e.Result != nil && marked(e, journal.MarkChildren)
	},
	"category B step by step": func(e *journal.Entry) bool {
		return e.Kind == journal.KindLeg1 && e.Result != nil && !marked(e, journal.MarkChildren)
	},
	"a taken arrival":   func(e *journal.Entry) bool { return arrives(e, true) },
	"a skipped arrival": func(e *journal.Entry) bool { return arrives(e, false) },
	"a join dispatched": func(e *journal.Entry) bool { return arrives(e, true) && dispatches(e, journal.MessageLeg1) },
	"a mapped output": func(e *journal.Entry) bool {
		return e.Kind == journal.KindLeg2 && e.Result != nil && e.Open == nil && e.Result.Code == 200
	},
	"a failed mapping": func(e *journal.Entry) bool {
		return e.Kind == journal.KindLeg2 && e.Result != nil && e.Open == nil && e.Result.Code == 500
	},
	"a stale message":   func(e *journal.Entry) bool { return e.Kind == journal.KindStale && e.Activity != "" },
	"a stale interrupt": func(e *journal.Entry) bool { return e.Kind == journal.KindStale && e.Activity == "" },
	"after the close":   func(e *journal.Entry) bool { return marked(e, journal.MarkAfterClose) },
	"a dead letter about a signal": func(e *journal.Entry) bool {
		return e.Kind == journal.KindDeadLetter && strings.HasPrefix(e.Activity, "hook")
	},
	"a dead letter about a child": func(e *journal.Entry) bool {
		return e.Kind == journal.KindDeadLetter && strings.HasPrefix(e.Activity, "await")
	},
	"a dead letter about an interrupt": func(e *journal.Entry) bool { return e.Kind == journal.KindDeadLetter && e.Activity == "" },
	"cancelled":                        func(e *journal.Entry) bool { return len(e.CancelledByClose) > 0 },
	"tasks apart":                      func(e *journal.Entry) bool { return marked(e, journal.MarkTasks) && !marked(e, journal.MarkClosed) },
}

func marked(e *journal.Entry, m journal.Mark) bool { return slices.Contains(e.Marks, m) }

func dispatches(e *journal.Entry, k journal.MessageKind) bool {
	return e.Kind != journal.KindCreated && slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool { return d.Kind == k })
}

func isBound(d journal.Dispatched) bool { return d.Kind == journal.MessageAnswer && d.At > 0 }

func woken(e *journal.Entry, by journal.By, k journal.ResponseKind) bool {
	return e.Response != nil && e.Response.By == by && e.Response.Kind == k
}

// folds reports whether a Leg1 is folded into the entry.
func folds(e *journal.Entry) bool {
	return slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool { return d.Folded != 0 })
}

// arrives reports whether the entry adds an arrival at a join whose taken digit is as given.
func arrives(e *journal.Entry, taken bool) bool {
	return slices.ContainsFunc(e.Moves(), func(m journal.LedgerMove) bool {
		return m.After/hundredM%100 > 0 && taken == (m.After/tenB%10 > 0)
	})
}

// The generator makes every fact that a law looks at.
func TestHonestFamiliesHaveEveryFeature(t *testing.T) {
	t.Parallel()
	missing := make(map[string]bool)
	features := maps.Clone(features)
	maps.Copy(features, functionFeatures)
	for name := range features {
		missing[name] = true
	}
	for seed := uint64(1); len(missing) > 0 && seed < 400; seed++ {
		for _, mode := range modes {
			for _, j := range replaytest.Family(replaytest.Options{
				Every: true, Mode: mode, Activities: 25, Trouble: seed%4 > 0, Choose: rand.New(rand.NewPCG(seed, 3)).IntN,
				Functions: seed%2 > 0, Effects: seed%2 > 0,
			}) {
				for _, e := range j.Entries() {
					for name := range missing {
						if features[name](e) {
							delete(missing, name)
						}
					}
				}
			}
		}
	}
	require.Empty(t, missing)
}
