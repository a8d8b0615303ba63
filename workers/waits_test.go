package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMicrosRoundUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int64{0, 0, 1, 1, 2},
		[]int64{micros(-1), micros(0), micros(1), micros(time.Microsecond), micros(time.Microsecond + 1)})
}
