package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const askFlow = `
flow: small
version: "1"
input: {type: object, required: [x]}
output: "${ w.output }"
activities: {start: {type: trigger}, w: {type: worker, topic: work, input: "${ start.output }"}}
transitions: {start: [w]}
`

// S8: a client that may not begin jobs asks for them. It gets the answers of Start, also over a
// bus that doubles messages: each key begins one job. What an engine would not start
// for itself it does not start for a client.
func TestS8AClientAsksForStarts(t *testing.T) {
	each(t, func(t *testing.T, cfg engine.Config) {
		var runs atomic.Int64
		r := start(t, cfg, membus.Config{Seed: 1, Duplicate: 0.2}, nil, echo(&runs))
		r.deploy(askFlow)
		r.deploy(strings.Replace(askFlow, "flow: small", "flow: strict\nidentity: strict", 1))
		strict := r.asks("strict", "", `{"x":1}`).Flow
		c := r.eng.Committer()
		var starts []store.Start
		for i := range 20 {
			starts = append(starts, r.asks("small", fmt.Sprintf("k%d", i/2), `{"x":1}`))
		}
		var ids []journal.JobID
		for i, s := range c.Ask(t.Context(), starts) {
			id := collation.NewJobID("test", starts[i].Key, 1)
			if s.Err == nil {
				ids = append(ids, s.Job)
			} else {
				require.Equal(t, &store.AlreadyStartedError{
					Job: id, Key: starts[i].Key, Flow: starts[i].Flow, SameFlow: true, SameInput: true,
				}, s.Err)
			}
			require.Equal(t, id, s.Job)
		}
		require.Len(t, ids, 10, "one of each two began its job")
		r.completed(ids, `{"x":1}`)

		other := r.asks("small", "k0", `{"x":2}`)
		var there *store.AlreadyStartedError
		require.ErrorAs(t, c.Ask(t.Context(), []store.Start{other})[0].Err, &there)
		require.False(t, there.SameInput)
		reasons := map[string]string{
			"input": "x", "version": "not found", "undo of another": "no start of a client", "trace": "no start of a client", "tag": "tag",
			"key": "key", "derived key": "no start of a client",
		}
		for name, change := range map[string]func(*store.Start){
			"input":           func(s *store.Start) { s.Input = []byte(`{"y":1}`) },
			"version":         func(s *store.Start) { s.Flow.Version = "7" },
			"undo of another": func(s *store.Start) { s.Flow = journal.FlowRef{Name: flow.UndoName, Version: "work"} },
			"trace":           func(s *store.Start) { s.Trace = string(make([]byte, 1000)) },
			"tag":             func(s *store.Start) { s.Tags = []string{""} },
			"key":             func(s *store.Start) { s.Key = "a\nb" },
			"derived key":     func(s *store.Start) { s.Flow = strict },
		} {
			s := r.asks("small", "new", `{"x":1}`)
			change(&s)
			err := c.Ask(t.Context(), []store.Start{s})[0].Err
			require.ErrorIs(t, err, engine.ErrFlowMoved, name)
			require.ErrorIs(t, err, engine.ErrRefused, name)
			require.ErrorContains(t, err, reasons[name], name)
		}
		_, err := r.store.FindJob(t.Context(), "new")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// S8: while no engine answers, a client says after a bounded time that it does not know. Its row
// stays, and repeating the start is safe.
func TestS8NoEngineAnswersAClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, membus.Config{Seed: 1, Loss: 1}, nil, workers.New())
		r.deploy(askFlow)
		began := time.Now()
		s := r.eng.Committer().Ask(t.Context(), []store.Start{r.asks("small", "k", `{"x":1}`)})[0]
		require.ErrorIs(t, s.Err, store.ErrUnknown)
		require.ErrorContains(t, s.Err, `start of "k"`)
		require.InDelta(t, 30, time.Since(began).Seconds(), 1)
	})
}
