package quipu

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInputIsTakenAsItIs: the limit counts the stored bytes. Bad JSON is refused with the place
// of the fault.
func TestInputIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("<&>", MaxInput/3-1)
	for _, v := range []any{text, json.RawMessage(`"` + text + `"`)} {
		got, err := marshal(v)
		require.NoError(t, err)
		require.Equal(t, `"`+text+`"`, string(got))
	}
	_, err := marshal(strings.Repeat("x", MaxInput-1))
	require.ErrorContains(t, err, "the limit is 1048576")
	_, err = marshal(json.RawMessage(`{"a": `))
	require.ErrorContains(t, err, "byte 6")
	got, err := marshal(json.RawMessage(nil))
	require.NoError(t, err)
	require.Equal(t, "null", string(got))
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
