package linear

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// runSpan is in which rounds begin, where QUIPU_LINEAR says nothing.
var runSpan = time.Duration(soak.Times(1, 12)) * time.Second

const (
	// endSpan bounds the end of every job after the faults (I11).
	endSpan = time.Minute
	// checkSpan bounds the check of one key.
	checkSpan = time.Minute
)

// I9, I11: what clients saw of each key fits one order of their operations, and
// every job that began is there and ends.
func TestI9Linearizable(t *testing.T) {
	span, seed := world.Settings(t, "QUIPU_LINEAR", runSpan)
	replay := fmt.Sprintf("QUIPU_LINEAR=%s QUIPU_LINEAR_SEED=%d go test -run %s ./tests/linear", span, seed, t.Name())
	t.Log(replay)
	pg := devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"quipu"}})
	total, histories := map[string]int{}, 0
	until := time.Now().Add(span)
	for round := 0; time.Now().Before(until) && !t.Failed(); round++ {
		t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			w := newStage(t, pg, round, func(owner string) *rand.Rand {
				var s [32]byte
				copy(s[:], fmt.Sprintf("%016x %x %s", seed, round, owner))
				return rand.New(rand.NewChaCha8(s)) //nolint:gosec // choices, no secret
			})
			histories += w.play(replay)
			for what, n := range w.Counts() {
				total[what] += n
			}
		})
	}
	t.Logf("%d histories in %s: %v", histories, span, total)
	require.NotZero(t, total["operations"])
	if span >= time.Minute {
		require.NotZero(t, total["unknown"], "no operation of unknown outcome: the faults miss")
	}
}

// play is the round: load under faults, then the end of every job, then the
// check. It returns how many histories it checked.
func (w *stage) play(replay string) int {
	stopEngines := w.run()
	defer stopEngines()
	stopFaults := w.faults()
	ctx, cancel := context.WithTimeout(context.Background(), loadSpan)
	defer cancel()
	var wg sync.WaitGroup
	for i, c := range w.clients {
		dice := w.Dice(fmt.Sprintf("client %d", i))
		wg.Go(func() { c.load(ctx, dice) })
	}
	devtest.AwaitAll(w.t, "the end of the clients' load", wg.Wait)
	stopFaults()
	w.finish()
	w.left()
	for _, c := range w.clients {
		c.rt.Close()
	}
	return w.check(replay)
}

// finish ends every job and looks at every key once more.
func (w *stage) finish() {
	last := &client{w: w, id: clients, rt: w.rt}
	var wg sync.WaitGroup
	for _, key := range w.keys {
		wg.Go(func() { last.finish(key) })
	}
	devtest.AwaitAll(w.t, "the end of every job", wg.Wait)
}

func (c *client) finish(key string) {
	until := time.Now().Add(endSpan)
	found := c.insist(call{verb: doFind, key: key}, until)
	if found.notFound {
		return
	}
	c.insist(call{verb: doInterrupt, key: key, id: c.w.id(false)}, until)
	c.insist(call{verb: doWait, key: key, gen: found.gen}, until)
	c.insist(call{verb: doJob, key: key, gen: found.gen}, until)
	c.insist(call{verb: doFind, key: key}, until)
}

// insist repeats a call until it is answered.
func (c *client) insist(x call, until time.Time) answer {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	for ctx.Err() == nil {
		from := c.w.now()
		said, err := c.w.ask(ctx, c.rt, x)
		c.w.record(c.id, x, from, said, err)
		if err == nil {
			return said
		}
		world.Pause(ctx, 20*time.Millisecond)
	}
	assert.Fail(c.w.t, "I11: no answer after the faults", describe(x, answer{}))
	return answer{}
}

// check gives each key's history to the checker.
func (w *stage) check(replay string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := byKey(w.history)
	for _, part := range parts {
		m := model(part)
		began := time.Now()
		result, info := porcupine.CheckOperationsVerbose(m, part, checkSpan)
		if took := time.Since(began); took > 5*time.Second {
			w.t.Logf("the check of %s, %d operations, took %s", part[0].Input.(call).key, len(part), took)
		}
		if result == porcupine.Ok {
			continue
		}
		dir := w.write(part, m, info)
		w.t.Errorf("I9: the history of %s: %s\n%d operations and a picture of them: %s\nagain: %s",
			part[0].Input.(call).key, result, len(part), dir, replay)
	}
	return len(parts)
}

// write keeps a history and the picture of it, in a directory that stays.
func (w *stage) write(part []porcupine.Operation, m porcupine.Model, info porcupine.LinearizationInfo) string {
	dir, err := os.MkdirTemp("", "quipu-linear-")
	require.NoError(w.t, err)
	var b bytes.Buffer
	slices.SortFunc(part, func(x, y porcupine.Operation) int { return int(x.Call - y.Call) })
	for _, o := range part {
		fmt.Fprintf(&b, "%12d %20d client %d: %s\n", o.Call, o.Return, o.ClientId, describe(o.Input.(call), o.Output.(answer)))
	}
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "history.txt"), b.Bytes(), 0o600))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "processes.txt"), []byte(w.log.String()), 0o600))
	require.NoError(w.t, porcupine.VisualizePath(m, info, filepath.Join(dir, "history.html")))
	return dir
}
