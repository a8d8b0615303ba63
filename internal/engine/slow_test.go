package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// long is an expression that costs more than one look at the time, and less than a step may.
const long = "start.output.l.filter(y, y > 0).size()"

// slows are flows that have the expression in one place each, and the message that it stops. In
// stepwise mode the request has turned into its answer.
var slows = map[string]struct{ flow, kind string }{
	"input":  {`  work: {type: worker, topic: t, input: {x: "${ LONG }"}}` + "\ntransitions: {start: [work]}", "leg1"},
	"when":   {`  work: {type: worker, topic: t}` + "\n" + `transitions: {start: [{to: work, when: "${ LONG > 0 }"}]}`, "start"},
	"each":   {`  work: {type: worker, topic: t, each: "${ [1, 2] }", input: {x: "${ LONG }"}}` + "\ntransitions: {start: [work]}", "leg1"},
	"output": {`  work: {type: worker, topic: t, output: {x: "${ LONG }"}}` + "\ntransitions: {start: [work]}", "request answer"},
	"end":    {`  work: {type: worker, topic: t}` + "\n" + `output: {x: "${ LONG }"}` + "\ntransitions: {start: [work]}", "request answer"},
	"child":  {`  work: {type: await, flow: "${ LONG > 0 ? 'quick' : 'none' }"}` + "\ntransitions: {start: [work]}", "leg1"},
}

// A decision that takes too long here is no verdict. Its message is held after a few attempts, and
// goes on when an operator retries it on a machine that is fast enough. Nobody else is held up.
func TestASlowDecisionIsSetAside(t *testing.T) {
	t.Parallel()
	for name, x := range slows {
		for mode, cfg := range map[string]engine.Config{"hot": {}, "cold": {HotBytes: -1}, "stepwise": {Stepwise: true}} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				said := &log{}
				cfg.Slow, cfg.Logger = 1, slog.New(slog.NewTextHandler(said, nil))
				r, id := slowly(t, cfg, x.flow)
				quick := r.publish("quick", "q", "{}")
				r.output(quick, "null")
				d := r.dead(id)
				require.Equal(t, collation.ReasonSlow, d.Letter.Reason)
				require.Contains(t, x.kind, string(r.row(id, d).Kind))
				require.Contains(t, d.Letter.Message, "3 times, because it took longer than 1ns on this machine; nothing of it was recorded")
				require.Equal(t, collation.HeldStuck, r.row(id, d).Held)
				stopped := said.count("was stopped; nothing was written")
				require.Contains(t, []int{3, 4}, stopped, "with what it folded, and by itself")
				require.NoError(t,
					r.eng.Committer().Act(t.Context(), store.Action{ID: d.ID, Retry: true, Who: "ann", Reason: "the machine has less to do"}))
				require.Eventually(t, func() bool {
					return said.count("was stopped; nothing was written") == stopped+3
				}, time.Minute, 10*time.Millisecond)
				r.proved(id)
			})
		}
		t.Run(name+" in time", func(t *testing.T) {
			t.Parallel()
			r, id := slowly(t, engine.Config{}, x.flow)
			r.ended([]journal.JobID{id})
			require.Equal(t, journal.JobCompleted, r.view(id).State)
		})
	}
}

// slowly starts a job of a flow that has the expression at its place.
func slowly(t *testing.T, cfg engine.Config, part string) (*rig, journal.JobID) {
	t.Helper()
	reg := workers.New()
	workers.Handle(reg, "t", func(context.Context, any) (any, error) { return nil, nil })
	r := start(t, cfg, membus.Config{}, nil, reg)
	r.deploy("flow: quick\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  work: {type: worker, topic: t}\ntransitions: {start: [work]}\n")
	r.deploy("flow: slow\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n" + strings.ReplaceAll(part, "LONG", long) + "\n")
	return r, r.publish("slow", "s", `{"l":[`+strings.TrimSuffix(strings.Repeat("1,", 5_000), ",")+`]}`)
}

// dead waits for the dead letter of a job.
func (r *rig) dead(id journal.JobID) (d store.DeadView) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		all := r.view(id).Dead
		if len(all) > 0 {
			d = all[0]
		}
		return len(all) > 0
	}, time.Minute, 10*time.Millisecond)
	return d
}

// row is the row for which a dead letter stands.
func (r *rig) row(id journal.JobID, d store.DeadView) *collation.Row {
	r.t.Helper()
	v := r.view(id)
	for i := range v.Rows {
		if v.Rows[i].GUID == d.Letter.Row {
			return &v.Rows[i]
		}
	}
	require.Fail(r.t, "no row", fmt.Sprint(d))
	return nil
}

// log collects lines from many goroutines.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *log) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), part)
}

// An order that is too slow to check is refused after a few attempts: the await has an error, and a
// client is told. It does not go from engine to engine for ever.
func TestASlowOrderIsRefused(t *testing.T) {
	t.Parallel()
	said := &log{}
	r, _ := slowly(t, engine.Config{Slow: 1, Logger: slog.New(slog.NewTextHandler(said, nil))},
		"  work: {type: worker, topic: t}\ntransitions: {start: [work]}")
	r.deploy("flow: checked\nversion: \"1\"\ninput: {properties: {l: {items: {type: integer}}}}\n" +
		"activities:\n  start: {type: trigger}\n  work: {type: worker, topic: t}\ntransitions: {start: [work]}\n")
	r.deploy("flow: parent\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n" +
		"  child: {type: await, flow: checked, input: \"${ start.output }\"}\ntransitions: {start: [child]}\n")
	input := `{"l":[` + ones(5_000) + `]}`
	parent := r.publish("parent", "p", input)
	r.failed(parent, journal.JobFailed, 500, "took longer than 1ns on this machine")
	require.Equal(t, collation.ReasonSlow, r.view(parent).Error.Class)
	r.proved(parent)

	asked := r.asks("checked", "asked", input)
	asked.Active = true
	out := r.eng.Committer().Ask(t.Context(), []store.Start{asked})
	require.ErrorIs(t, out[0].Err, engine.ErrRefused)
	require.ErrorContains(t, out[0].Err, "took longer than 1ns on this machine")
	require.Equal(t, 6, said.count("was stopped; nothing was written"))
}
