package engine

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process with a GOGC of its own holds no reserve. The test affects the whole process, so no
// other runs beside it.
func TestReserve(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	require.Nil(t, reserveAt(gcPercent()), "who sets it has it so")
	debug.SetGCPercent(100)
	require.Len(t, reserveAt(gcPercent()), reserved)
}
