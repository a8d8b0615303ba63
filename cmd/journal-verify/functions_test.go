package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// maxTurns is the number of turns after which a function ends.
const maxTurns = 6

// suspend decides for a durable function from what the store knows of it. It waits on for most
// open pauses and for something new; now and then it registers a compensation. Nil: it ends.
func (s *space) suspend(r *collation.Row, l store.Lease) *journal.Response {
	s.Helper()
	if s.choose(4) == 0 {
		e := journal.Effect{
			Key: sha256.Sum256(fmt.Appendf(nil, "%s undo %d", r.GUID, r.Turn)), Name: fmt.Sprint("undo-", r.Turn),
			Class: replay.ClassUndo, Position: fmt.Sprintf("%d.0.1", r.Turn),
		}
		_, _, err := journaltest.Driven{Store: s.store}.StartEffect(s.Context(), l, e)
		require.NoError(s, err)
	}
	if r.Turn >= maxTurns {
		return nil
	}
	recorded, err := s.store.Pauses(s.Context(), r.Job, r.GUID)
	require.NoError(s, err)
	var pauses []journal.Pause
	for _, p := range recorded {
		if p.Seq == 0 && s.choose(5) > 0 {
			pauses = append(pauses, s.named(p.PauseRef))
		}
	}
	kind := []journal.PauseKind{journal.PauseSleep, journal.PauseSignal, journal.PauseChild}[s.choose(3)]
	fresh := s.named(journal.PauseRef{Kind: kind, Name: "p", Position: fmt.Sprint(r.Turn)})
	return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: append(pauses, fresh)}
}

// named returns what a function waits for under a name, always the same.
func (s *space) named(p journal.PauseRef) journal.Pause {
	x := journal.Pause{PauseRef: p}
	odd := strings.ContainsAny(p.Position, "13579")
	switch p.Kind {
	case journal.PauseSleep:
		if odd {
			x.For = 3600e6
		}
	case journal.PauseSignal:
		x.Topic, x.Key = "go", "k1"
		if odd {
			x.Topic, x.For = "paid", 1800e6
		}
	case journal.PauseChild:
		x.Flow, x.Input = "child", []byte(`{"n":1}`)
		if odd {
			x.Flow = "nobody"
		}
	}
	return x
}

// Waits of functions are counted, and open items name their function.
func TestFunctionsAreCounted(t *testing.T) {
	t.Parallel()
	nap, ok := replaytest.Sleep("nap", "1", 3600e6), replaytest.Signal("ok", "2", "order.ok", "order-42", 0)
	f := replaytest.NewFunction(replaytest.FunctionOptions{}).Effect("3", "pay", "guarded", `{"id":7}`).Suspend(nap, ok).Wake("nap").Suspend(ok)
	name := save(t, exported(t, f.Journal()))
	r := files(t, name)
	require.Equal(t, exitProved, r.code, r.err)
	require.Contains(t, r.out, "Of the entries 2 are of effects, in 1 chains; 1 requests of functions suspended, 1 wakes came to them.")
	v := files(t, "--json", name).objects(t)[0]
	require.Equal(t, []int64{2, 1, 1, 1}, []int64{v.Counts.Effects, int64(v.Counts.Chains), int64(v.Counts.Functions), int64(v.Counts.Wakes)})
	require.Len(t, v.Open, 2)
	require.Equal(t, "request", v.Open[0].What)
	require.True(t, v.Open[0].Suspended)
	require.Equal(t, []int{1, 0}, []int{v.Open[0].Pauses, v.Open[0].Came})
	require.Equal(t, []string{"wait", "ok", v.Open[0].GUID}, []string{v.Open[1].What, v.Open[1].Name, v.Open[1].Request})
}
