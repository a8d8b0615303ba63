package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// TestTranscripts reads the messages of testdata/messages.txt: hint, as it is written again, and
// response, as it is recorded; or why they are refused.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/messages.txt", func(t *testing.T, d *datadriven.TestData) string {
		text, err := []byte(nil), error(nil)
		switch d.Cmd {
		case "hint":
			var h *wire.Hint
			if h, err = wire.Decode[wire.Hint]([]byte(d.Input)); err == nil {
				text = wire.Encode(h)
			}
		case "response":
			r, bad := wire.Decode[wire.Response]([]byte(d.Input))
			require.NoError(t, bad)
			var recorded *journal.Response
			if recorded, err = r.Journal(); err == nil {
				text = journal.EncodeResponse(recorded)
			}
		}
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return err.Error() + "\n"
		}
		return string(text) + "\n"
	})
}

// An invalid pause is refused, with its place and the limit. Others are in testdata/messages.txt.
func TestE12SuspensionRefused(t *testing.T) {
	t.Parallel()
	sleep := wire.Pause{Kind: journal.PauseSleep, Name: "nap", Position: "1", For: 1_000_000}
	child := wire.Pause{Kind: journal.PauseChild, Name: "bill", Position: "3.0.1", Flow: "invoice", Key: "bill-1"}
	broken, nul := child, sleep
	broken.Input, nul.Name = []byte("{"), "a\x00"
	child.Input = []byte(`"` + strings.Repeat("x", wire.MaxPauseBytes) + `"`)
	many := make([]wire.Pause, wire.MaxPauses+1)
	for i := range many {
		many[i] = sleep
		many[i].Name = fmt.Sprint(i)
	}
	sleep.Name = strings.Repeat("n", 201)
	for says, pauses := range map[string][]wire.Pause{
		"1001 pauses": many, "its name has 201 bytes": {sleep}, "the limit of a suspension is": {child},
		"its name": {nul}, "pause 0": {broken},
	} {
		_, err := wire.SuspendedUntil(pauses).Journal()
		require.ErrorIs(t, err, wire.ErrMalformed)
		require.ErrorContains(t, err, says)
	}
}

func TestMicrosRoundUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int64{0, 0, 1, 1, 2}, []int64{
		wire.Micros(-1), wire.Micros(0), wire.Micros(1),
		wire.Micros(time.Microsecond), wire.Micros(time.Microsecond + 1),
	})
}
