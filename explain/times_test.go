package explain

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
)

// 1.9: passes are in the order of their indices, whatever an address looks like.
func TestAddressesAreInTheOrderOfPasses(t *testing.T) {
	t.Parallel()
	want := []collation.DAD{",0", ",0,0", ",0,9,0", ",0,10,0", ",0^4,1,0", ",0^5,1", ",0^6", ",1,0^5"}
	slices.SortFunc(want, compareDAD)
	require.Equal(t, []collation.DAD{",0", ",0,0", ",0^6", ",0^5,1", ",0^4,1,0", ",0,9,0", ",0,10,0", ",1,0^5"}, want)
	require.Zero(t, compareDAD(",0^4,3", ",0^4,3"))
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 900 * time.Millisecond: "900 ms", 59 * time.Second: "59 s", time.Minute: "1 min",
		90 * time.Second: "1 min 30 s", time.Hour: "1 h", 25*time.Hour + time.Minute: "1 d 1 h", 48 * time.Hour: "2 d", 61 * time.Minute: "1 h 1 min",
	} {
		require.Equal(t, want, span(d), d)
	}
}
