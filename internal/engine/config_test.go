package engine

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
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
		cfg.Store, cfg.Space = memstore.New(memstore.Config{}), "test"
		_, err := cfg.withDefaults()
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, said)
	}
}

// Of several faults, always the same one is said.
func TestConfigFaultsHaveAnOrder(t *testing.T) {
	t.Parallel()
	many := Config{
		Store: memstore.New(memstore.Config{}), Space: "test",
		MaxBatch: 9999, Lanes: 9999, LaneSlots: 99999, StartSlots: 99999, Committers: 9999,
	}
	for range 20 {
		_, err := many.withDefaults()
		require.ErrorContains(t, err, "Config.MaxBatch is 9999")
	}
}

// T6: what docs/wire.md tells the authors of workers about the engine's spans.
func TestT6SpansAsStated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("no answer %d minutes after it was sent", int(anyway.Minutes())))
	require.Contains(t, string(text), fmt.Sprintf("held after %d runs", store.MaxRuns))
}

// E4, W8: with the default lease a session lasts 3 s, and nobody asks about an unfinished Guarded
// effect without a timeout before 30 s.
func TestW8SpansAfterADeath(t *testing.T) {
	t.Parallel()
	cfg, err := Config{Space: "s", Store: memstore.New(memstore.Config{})}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, cfg.Lease)
	mode := cfg.Mode()
	require.EqualValues(t, 30_000_000, mode.CallEnds(collation.ClassGuarded, 0, 0))
	require.EqualValues(t, 5_000_000, mode.CallEnds(collation.ClassGuarded, 5*time.Second, 0))
	require.Equal(t, collation.Never, mode.CallEnds(collation.ClassIdempotent, 0, 0), "the same call is safe to repeat at once")
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
