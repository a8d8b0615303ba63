package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// W11: a job is kept as long as its flow says, a child as long as its own flow says. If a flow
// says nothing, the space's default counts. An engine reads that once; a later change counts
// for the next engine.
func TestW11Expire(t *testing.T) {
	each(t, func(t *testing.T, cfg engine.Config) {
		const usual = 720 * time.Hour
		ctx := context.Background()
		r := start(t, cfg, membus.Config{Seed: 1}, nil, workers.New())
		require.NoError(t, r.store.SetExpireDefault(ctx, usual))
		deploy := func(name, expire, second string) {
			r.deploy("flow: " + name + "\nversion: \"1\"\n" + expire +
				"activities: {start: {type: trigger}, second: " + second + "}\ntransitions: {start: [second]}\n")
		}
		const pass = "{type: hook}"
		deploy("silent", "", pass)
		deploy("kept", "expire: never\n", pass)
		deploy("brief", "expire: 1m\n", pass)
		deploy("parent", "expire: never\n", "{type: await, flow: silent, id: born}")
		deploy("failing", "", "{type: interrupt}")
		keeps := func(job journal.JobID) time.Duration {
			r.ended([]journal.JobID{job})
			v := r.view(job)
			if v.ExpiresAt == collation.Never {
				return 0
			}
			keep := time.Duration(v.ExpiresAt-v.Closed) * time.Microsecond
			return keep.Round(time.Second) // the clock went on between decision and commit
		}
		want := map[string]time.Duration{"silent": usual, "kept": 0, "brief": time.Minute, "parent": 0, "failing": usual}
		for name, keep := range want {
			require.Equal(t, keep, keeps(r.run(name, name, `{}`)), name)
			require.Equal(t, keep, keeps(r.publish(name, name+" again", `{}`)), name) // its child is refused: the key is taken
		}
		require.Equal(t, usual, keeps(r.find("born")), "the child's own")
		for _, name := range []string{flow.CallName, flow.UndoName} {
			_, f, err := r.eng.Publisher().Flows.Resolve(ctx, name, "work")
			require.NoError(t, err)
			require.Equal(t, usual, f.Expire(), "built-in flows say nothing: %s", name)
		}

		require.NoError(t, r.store.SetExpireDefault(ctx, 2*usual))
		deploy("later", "", pass)
		require.Equal(t, usual, keeps(r.run("later", "later", `{}`)), "one engine, one default")
		_, f, err := engine.NewFlows(r.store).Resolve(ctx, "later", "")
		require.NoError(t, err)
		require.Equal(t, 2*usual, f.Expire(), "the next engine's")
	})
}
