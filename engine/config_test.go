package engine

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
)

// A number beyond its limit is refused with its field, its value and the limit.
func TestConfigLimits(t *testing.T) {
	t.Parallel()
	for said, cfg := range map[string]Config{
		"Config.MaxBatch is 501: at most 500":       {MaxBatch: 501},
		"Config.Lanes is 1025: at most 1024":        {Lanes: 1025},
		"Config.LaneSlots is 16385: at most 16384":  {LaneSlots: 16385},
		"Config.StartSlots is 16385: at most 16384": {StartSlots: 16385},
	} {
		cfg.Store, cfg.Space = memory.New(memory.Config{}), "test"
		_, err := cfg.withDefaults()
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, said)
	}
}

// T6: what docs/wire.md tells the authors of workers about the engine's spans.
func TestT6SpansAsStated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/wire.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("no answer %d minutes after it was sent", int(anyway.Minutes())))
	require.Contains(t, string(text), fmt.Sprintf("held after %d runs", store.MaxRuns))
}

// A process with a GOGC of its own holds no reserve. The test affects the whole process, so no
// other runs beside it.
func TestReserve(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	require.Nil(t, reserveAt(gcPercent()), "who sets it has it so")
	debug.SetGCPercent(100)
	require.Len(t, reserveAt(gcPercent()), reserved)
}
