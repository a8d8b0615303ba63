package spans_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzOf: a traceparent of a starter is taken as it is, or the job has a trace of its own (O1).
func FuzzOf(f *testing.F) {
	const whole = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, seed := range []string{
		whole, "", "01" + whole[2:] + "-more", whole + "-more", "ff" + whole[2:], strings.ToUpper(whole),
		strings.Replace(whole, "b7ad6b7169203331", strings.Repeat("0", 16), 1),
	} {
		f.Add(seed)
	}
	own := spans.Of(journal.JobID{7}, "")
	f.Fuzz(func(t *testing.T, text string) {
		c := spans.Of(journal.JobID{7}, text)
		require.False(t, c.Trace.IsZero())
		if c.Caller.IsZero() {
			require.Equal(t, own, c)
			return
		}
		again := c.Traceparent(c.Caller, c.Flags)
		require.Equal(t, again[2:], text[2:len(again)])
		require.Equal(t, c, spans.Of(journal.JobID{8}, again), "whatever the job")
	})
}
