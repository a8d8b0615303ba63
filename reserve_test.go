package quipu

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reserve is there once, while an engine runs, and not in a process with a GOGC of its own.
// The test affects the whole process, so no other runs beside it.
func TestReserve(t *testing.T) {
	require.Nil(t, reserve.bytes)
	first, second := hold(), hold()
	require.Len(t, reserve.bytes, reserved)
	first()
	first()
	require.Len(t, reserve.bytes, reserved, "the other engine runs")
	second()
	require.Nil(t, reserve.bytes)

	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	defer hold()()
	require.Nil(t, reserve.bytes, "who sets it has it so")
}
