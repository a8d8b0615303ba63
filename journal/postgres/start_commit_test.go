package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// starting returns what begins jobs of a flow with one worker, through a running committer.
func starting(t *testing.T, s *Store) (begin func(keys ...string) []store.Started) {
	t.Helper()
	f, err := flow.New("one").Version("1").Trigger("start").Worker("a", "topic").Transition("start", "a").Build()
	require.NoError(t, err)
	ref := collation.RefOf(f)
	must(s.Deploy(t.Context(), store.Deployment{Ref: ref, Canonical: f.Canonical(), Activate: true}))(t)
	c := must(engine.NewCommitter(t.Context(),
		engine.Config{Store: s, Bus: membus.New(membus.Config{}), Space: s.cfg.Space, Committers: 1}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, devtest.Await(t, "the end of the committer", done))
	})
	return func(keys ...string) []store.Started {
		starts := make([]store.Start, len(keys))
		for i, k := range keys {
			starts[i] = store.Start{Flow: ref, Active: true, Trigger: "start", Key: k, Input: []byte(`{}`)}
		}
		return c.Start(t.Context(), starts)
	}
}

// W9: a start is one round trip: the test of its key and of the active version, the inception, the
// first steps and the commit. A reading of the clock comes beside it once a second at most.
func TestW9AStartIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
	begin := starting(t, s)
	least := int64(1000)
	for i := range 20 {
		before := p.Trips()
		require.NoError(t, begin(fmt.Sprint("k", i))[0].Err)
		least = min(least, p.Trips()-before)
	}
	require.EqualValues(t, 1, least)
	require.Equal(t, 20, s.rows(t, "dispatches WHERE kind = 'request' AND topic = 'topic'"), "the first requests are in the commit")
}

// W3, J4: the connection is lost in the middle of a commit, or just before its answer, under a
// hundred callers. What became of it is found out before anybody is answered: each caller gets its
// job, which was begun once.
func TestW3AnUnknownCommitUnderAHundredCallers(t *testing.T) {
	t.Parallel()
	for name, cutAt := range map[string]string{"it was committed": "COMMIT\x00", "it was not": "INSERT 0 1\x00"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *cut.Proxy
			s := fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
			begin := starting(t, s)
			require.NoError(t, begin("before")[0].Err)
			var lost atomic.Bool
			p.ResetAt(cutAt, func() { lost.Store(true) })
			const callers = 100
			var mu sync.Mutex
			begun := map[journal.JobID]int{}
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					out := begin(fmt.Sprint("k", i/2))[0] // two of each key
					if there := new(store.AlreadyStartedError); out.Err != nil &&
						(!errors.As(out.Err, &there) || !there.SameInput) {
						t.Error(out.Err)
					}
					mu.Lock()
					defer mu.Unlock()
					if begun[out.Job] += 0; out.Err == nil {
						begun[out.Job]++
					}
				})
			}
			devtest.AwaitAll(t, "the answers to all callers", all.Wait)
			require.True(t, lost.Load())
			require.Len(t, begun, callers/2)
			for _, n := range begun {
				require.Equal(t, 1, n, "one of the two callers began it, and knows")
			}
			require.Equal(t, 1+callers/2, s.rows(t, "jobs"))
		})
	}
}
