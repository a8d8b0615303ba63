package nats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// S2: who floods a process with messages that are not authentic gets one line of its log in ten seconds, which
// counts all of them.
func TestS2StrangersFillNoLog(t *testing.T) {
	t.Parallel()
	var s strangers
	start := time.Unix(1_700_000_000, 0)
	lines, told := 0, 0
	const flood, during = 10_000, time.Minute
	for i := range flood {
		if n := s.count(start.Add(during * time.Duration(i) / flood)); n > 0 {
			lines, told = lines+1, told+n
		}
	}
	require.Equal(t, int(during/strangersEvery), lines)
	require.Equal(t, flood, told+s.n)
}
