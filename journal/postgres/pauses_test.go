package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// E12: the column reads as it was written, whatever the names.
func TestE12PausesOfARow(t *testing.T) {
	t.Parallel()
	require.Nil(t, encodePauses(nil), "NULL")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		want := make([]collation.Pause, n)
		for i := range want {
			want[i] = collation.Pause{
				PauseRef: journal.PauseRef{
					Kind: rapid.SampledFrom([]journal.PauseKind{
						journal.PauseSleep, journal.PauseSignal, journal.PauseChild,
					}).Draw(t, "kind"),
					Name: rapid.String().Draw(t, "name"), Position: rapid.String().Draw(t, "position"),
				},
				GUID:    journal.GUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid")),
				Timeout: rapid.Bool().Draw(t, "timeout"), Taken: rapid.Bool().Draw(t, "taken"), Came: rapid.Bool().Draw(t, "came"),
			}
		}
		got := must(decodePauses(encodePauses(want)))(t)
		require.Equal(t, want, got)
	})
}

// J4, C10: a row with unreadable pauses is a fault of its own job. Nobody gets half of it, and
// other jobs go on.
func TestPausesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"x", `{}`, `[{"guid":"1"}]`, `[{"when":1}]`, `[`} {
		require.ErrorIs(t, failed(decodePauses([]byte(bad))), errCorrupt, bad)
	}
	s := open(t)
	ids := startJobs(t, s, "bad", "good")
	bad, good := request(t, s, ids[0]), request(t, s, ids[1])
	require.NoError(t, s.run(t, fmt.Sprintf(`UPDATE dispatches SET pauses = '[{"when":1}]' WHERE job = '%s' AND guid = '%s'`, bad.Job, bad.GUID)))
	c := openCommitter(t, s)
	_, err := c.Load(t.Context(), []store.Want{{Job: bad.Job, Row: bad.GUID}}, true)
	require.ErrorIs(t, err, store.ErrRejected)
	require.ErrorContains(t, err, bad.Job.String())
	require.ErrorIs(t, failed(s.Pauses(t.Context(), bad.Job, bad.GUID)), store.ErrRejected)
	due, _, err := s.Due(t.Context(), 10)
	require.NoError(t, err)
	claims := make([]store.Claim, len(due))
	for i := range due {
		claims[i] = store.Claim{Row: due[i], Send: true}
	}
	out := must(s.Claim(t.Context(), claims))(t)
	var sent []journal.GUID
	for i := range out {
		sent = append(sent, out[i].Row.GUID)
	}
	require.Contains(t, sent, good.GUID)
	require.NotContains(t, sent, bad.GUID)
	require.Len(t, sent, len(due)-1)
}
