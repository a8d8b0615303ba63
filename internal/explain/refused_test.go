package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/store"
)

// T5: a message that the bus has refused is not told as sent, and what keeps the messages of its
// queue from their way is said: of its topic, or else of its stream.
func TestT5RefusedIsNotTold(t *testing.T) {
	t.Parallel()
	const room, full = "the topic charge has 5 of 4 bytes", "the stream takes no messages"
	served := store.Process{Topics: []string{"charge"}, Engine: true}
	of := func(kind, queue, text string) []store.ProcessView {
		return []store.ProcessView{
			{Process: served},
			{Process: served, Doing: store.Doing{Troubles: []store.Trouble{{Kind: kind, Queue: queue, Text: text}}}},
		}
	}
	for name, c := range map[string]struct {
		refused   bool
		processes []store.ProcessView
		want      string
	}{
		"of its topic":  {true, append(of("refused", "work", full), of("room", "work.charge", room)...), "could not be published: " + room + "; it is tried again in 1 s"},
		"of its stream": {true, of("refused", "work", full), "could not be published: " + full},
		"not told":      {true, of("room", "work.other", room), "could not be published, or it is not known whether it was"},
		"sent before":   {false, of("room", "work.charge", room), "it waits for the response, and is looked for again in 1 s; but " + room},
		"all is well":   {false, of("refused", "start", full), "it waits for the response, and is looked for again in 1 s"},
	} {
		w := newWorld(t, everything)
		r := w.request("charge", "charge", 1)
		if c.refused {
			r.TurnSent = collation.NoTurn
		}
		w.job.Processes = c.processes
		w.judge()
		reasons := explain.Why(&w.job)
		require.Len(t, reasons, 1, name)
		require.Contains(t, reasons[0].Text, c.want, name)
		require.Equal(t, c.refused, reasons[0].Kind == string(explain.KindUnsent), name)
		if name == "all is well" {
			require.NotContains(t, reasons[0].Text, full)
		}
	}
}
