package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/memory"
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
