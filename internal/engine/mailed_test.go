package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// J3, T2, E13: a signal that came before its wait is published by the process that registers the
// wait. No sweeper looks for it.
func TestE13AKeptSignalIsSentByTheCommitOfItsWait(t *testing.T) {
	each(t, func(t *testing.T, cfg engine.Config) {
		cfg.Sweep, cfg.Resend = 24*time.Hour, 24*time.Hour
		r := start(t, cfg, membus.Config{}, nil, workers.New())
		synctest.Wait() // the first sweep is over
		r.deploy(`
flow: waits
version: "1"
output: "${ news.output }"
activities:
  start: {type: trigger}
  news: {type: hook, signal: news, key: "${ job.id }"}
transitions: {start: [news]}
`)
		told, err := r.eng.Committer().Signal(t.Context(), collation.Signal{
			GUID: journal.GUID{9}, Topic: "news", Key: "j", Code: collation.CodeOK, Payload: []byte(`7`),
		})
		require.NoError(t, err)
		require.Equal(t, store.SignalKept, told.State)
		began := time.Now()
		id := r.publish("waits", "j", `null`)
		synctest.Wait()
		r.output(id, `7`)
		require.Zero(t, time.Since(began))
		r.proved(id)
	})
}
