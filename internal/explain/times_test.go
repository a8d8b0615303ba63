package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 900 * time.Millisecond: "900 ms", 59 * time.Second: "59 s", time.Minute: "1 min",
		90 * time.Second: "1 min 30 s", time.Hour: "1 h", 25*time.Hour + time.Minute: "1 d 1 h", 48 * time.Hour: "2 d", 61 * time.Minute: "1 h 1 min",
	} {
		require.Equal(t, want, span(d), d)
	}
}
