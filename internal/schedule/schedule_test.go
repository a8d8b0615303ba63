package schedule_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/schedule"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return v
}

// TestSchedules reads schedules and their times: next [n=…] (cron | zone | from) · missed (last | now
// | policy | limit, of an hourly one).
func TestSchedules(t *testing.T) {
	datadriven.RunTest(t, "testdata/schedule.txt", func(t *testing.T, d *datadriven.TestData) string {
		in := strings.Split(d.Input, "|")
		for i := range in {
			in[i] = strings.TrimSpace(in[i])
		}
		var out strings.Builder
		switch d.Cmd {
		case "next":
			s, err := schedule.Parse(in[0], in[1])
			if err != nil {
				require.ErrorIs(t, err, schedule.ErrSpec)
				return err.Error() + "\n"
			}
			n, from := 1, at(t, in[2])
			d.MaybeScanArgs(t, "n", &n)
			for range n {
				from = s.Next(from)
				fmt.Fprintln(&out, from.UTC().Format(time.RFC3339))
			}
		case "missed":
			hourly, err := schedule.Parse("0 * * * *", "")
			require.NoError(t, err)
			limit, err := strconv.Atoi(in[3])
			require.NoError(t, err)
			fire, upTo := hourly.Missed(at(t, in[0]), at(t, in[1]), in[2], limit)
			for _, f := range fire {
				fmt.Fprintln(&out, f.UTC().Format(time.RFC3339))
			}
			fmt.Fprintln(&out, "up to", upTo.UTC().Format(time.RFC3339))
		}
		return out.String()
	})
	_, err := schedule.Parse("0 0 * * *"+string(make([]byte, schedule.MaxCron)), "")
	require.ErrorContains(t, err, "the limit is 256")
}

func TestKeyIsTheTimeItself(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	when := at(t, "2026-10-25T00:30:00Z")
	require.Equal(t, "night@2026-10-25T00:30:00Z", schedule.Key("night", when.In(berlin)))
}
