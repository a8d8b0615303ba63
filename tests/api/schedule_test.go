package api_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// The roles schedule and retention work without engines and NATS. A flow that has been active for
// three minutes has its three jobs, once each, and a closed job whose time has passed is gone.
func TestScheduleAndRetention(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, `
flow: brief
version: "1"
expire: 1s
activities: {start: {type: trigger}}
`, `
flow: tick
version: "1"
schedule: {cron: "* * * * *", catch_up: all}
activities: {start: {type: trigger}}
`)
	began := time.Now()
	_, err := s.db().Exec(ctx, "UPDATE quipu_default.flows SET scheduled = scheduled - 180000000 WHERE name = 'tick'")
	require.NoError(t, err)
	s.output(s.begin("brief", "k", nil), `null`)

	var page quipu.JobPage
	s.until("the job is removed, and others are begun", func() bool {
		s.runFor(200*time.Millisecond,
			quipu.Config{Postgres: s.world.Postgres, Roles: []quipu.Role{quipu.RoleSchedule, quipu.RoleRetention}})
		_, gone := s.Find(ctx, "k")
		var err error
		page, err = s.Jobs(ctx, quipu.JobFilter{Flow: "tick"})
		require.NoError(t, err)
		return errors.Is(gone, quipu.ErrNotFound) && len(page.Jobs) >= 3
	})
	require.LessOrEqual(t, len(page.Jobs), 4+int(time.Since(began)/time.Minute), "one more, when a minute begins just now")
	for _, j := range page.Jobs {
		s.output(quipu.Job{ID: j.ID}, `null`)
	}
}

// handedOver is a flow whose versions follow each other while no process looks at its schedule.
type handedOver struct {
	name     string
	versions []string // the schedule of each; empty for none
	inactive bool     // the versions after the first are deployed without activation
	then     []string // versions that are activated at last
	want     []int    // the times that start a job, in minutes before now
	version  string   // of these jobs
}

// minutesAgo is a schedule of these minutes of each hour.
func minutesAgo(now time.Time, rest string, ago ...int) string {
	cron := ""
	for _, n := range ago {
		cron += fmt.Sprintf(",%d", now.Add(time.Duration(-n)*time.Minute).UTC().Minute())
	}
	return fmt.Sprintf("schedule: {cron: \"%s * * * *\", %s}\n", cron[1:], rest)
}

// late deploys and activates the versions of a flow, for whose schedule nobody has looked for a
// quarter of an hour since the first.
func (s *space) late(c *handedOver) {
	s.t.Helper()
	for i, schedule := range c.versions {
		f, err := flow.Parse("f.yaml", fmt.Appendf(nil, "flow: %s\nversion: \"%d\"\n%sactivities: {start: {type: trigger}}\n", c.name, i+1, schedule))
		require.NoError(s.t, err)
		if c.inactive {
			_, err := s.Operator().Deploy(s.t.Context(), f, false, "")
			require.NoError(s.t, err)
		} else {
			require.NoError(s.t, s.Deploy(s.t.Context(), f))
		}
		if i == 0 {
			s.setBack(c.name)
		}
	}
	for _, version := range c.then {
		require.NoError(s.t, s.Operator().Activate(s.t.Context(), c.name, version, ""))
	}
}

func (s *space) setBack(name string) {
	s.t.Helper()
	_, err := s.db().Exec(s.t.Context(), "UPDATE quipu_default.flows SET scheduled = quipu_default.micros() - 900000000 WHERE name = $1", name)
	require.NoError(s.t, err)
}

// started are the keys and versions of the jobs of a flow.
func (s *space) started(name string) map[string]string {
	s.t.Helper()
	page, err := s.Jobs(s.t.Context(), quipu.JobFilter{Flow: name})
	require.NoError(s.t, err)
	all := map[string]string{}
	for _, job := range page.Jobs {
		all[job.Key] = job.Version
	}
	return all
}

// E16, T8: what was missed is made up for once, whatever version is active when a process looks
// again, and nothing that the version before had not missed.
func TestScheduleGoesOnInTheNextVersion(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var now time.Time
	require.NoError(t, s.db().QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	all, ahead := minutesAgo(now, "catch_up: all", 10, 9, 8), minutesAgo(now, "catch_up: all", -30)
	none := minutesAgo(now, "catch_up: none", 10, 9, 8)
	missed := []int{10, 9, 8}
	cases := []handedOver{
		{name: "same", versions: []string{all, all}, want: missed, version: "2"},
		{name: "twice", versions: []string{all, all, all}, want: missed, version: "3"},
		{name: "other", versions: []string{all, minutesAgo(now, "catch_up: all", 12, 9, 7)}, want: []int{9, 7}, version: "2"},
		{name: "zone", versions: []string{all, minutesAgo(now, "catch_up: all, zone: Asia/Tokyo", 10, 9, 8)}, want: missed, version: "2"},
		{name: "nothing", versions: []string{ahead, all}},
		{name: "between", versions: []string{all, "", all}},
		{name: "stopped", versions: []string{all, ""}},
		{name: "back", versions: []string{all, all}, then: []string{"1"}, want: missed, version: "1"},
		{name: "inactive", versions: []string{all, ahead}, inactive: true, want: missed, version: "1"},
		{name: "activated", versions: []string{all, all}, inactive: true, then: []string{"2", "2"}, want: missed, version: "2"},
		{name: "from_none", versions: []string{none, all}, want: missed, version: "2"},
		{name: "to_none", versions: []string{all, none}},
		{name: "to_one", versions: []string{all, minutesAgo(now, "", 10, 9, 8)}, want: []int{8}, version: "2"},
		{name: "zz_last", versions: []string{all}, want: missed, version: "1"}, // looked at after the others
	}
	for i := range cases {
		s.late(&cases[i])
	}
	for range 2 { // processes
		rt, err := quipu.Open(t.Context(),
			quipu.Config{
				Postgres: s.world.Postgres, Roles: []quipu.Role{quipu.RoleSchedule}, Logger: devtest.Logger(t),
			})
		require.NoError(t, err)
		t.Cleanup(rt.Close)
		devtest.Work(t, rt.Run)
	}
	s.until("the last flow is looked at", func() bool { return len(s.started("zz_last")) == len(missed) })
	for _, c := range cases {
		want := map[string]string{}
		for _, ago := range c.want {
			at := now.Add(time.Duration(-ago) * time.Minute).UTC().Truncate(time.Minute)
			want[c.name+"@"+at.Format(time.RFC3339)] = c.version
		}
		require.Equal(t, want, s.started(c.name), c.name)
	}
	// A time that has its job starts none for another version.
	s.setBack("same")
	f, err := flow.Parse("f.yaml", []byte("flow: same\nversion: \"9\"\n"+all+"activities: {start: {type: trigger}}\n"))
	require.NoError(t, err)
	require.NoError(t, s.Deploy(t.Context(), f))
	db := s.db()
	s.until("the schedule has gone on", func() (on bool) {
		require.NoError(t, db.QueryRow(t.Context(), "SELECT scheduled > quipu_default.micros() - 300000000 FROM quipu_default.flows WHERE name = 'same' AND active").Scan(&on))
		return on
	})
	require.Len(t, s.started("same"), len(missed))
}
