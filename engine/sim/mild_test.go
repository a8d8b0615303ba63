package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In mild weather a Guarded effect is parked by nothing but the timeout of a try,
// and only the effect whose call that cut is excused (P31).
func TestP31ExcusesWhatATimeoutCut(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	r.init()
	r.cutOff("aa")
	died := func(key string) string {
		return `effect "e0" (key ` + key + `) may have been applied: the run that called it died or lost its lease; look outside`
	}
	require.True(t, r.cutByTimeout(`effect "e0" (key bb) may have been applied: the timeout of the try passed`))
	require.True(t, r.cutByTimeout(died("aa")), "the next run finds what the cut one left")
	require.False(t, r.cutByTimeout(died("bb")), "its call was not cut")
	require.False(t, r.cutByTimeout(`effect "e0" (key aa) may have been applied: no answer from outside`), "another reason")
}
