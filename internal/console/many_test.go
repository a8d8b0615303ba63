package console_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// O7: of many jobs a page reads about as many as it shows. The server counts the rows that it reads
// of the table; a connection tells it its numbers at the latest when it ends.
func TestO7PagesReadIndexes(t *testing.T) {
	t.Parallel()
	const jobs = 4000
	dsn := devtest.Postgres(t)
	open := func() *quipu.Runtime {
		rt, err := quipu.Open(t.Context(), quipu.Config{Postgres: dsn})
		require.NoError(t, err)
		return rt
	}
	rt := open()
	startSleepers(t, rt, jobs)
	rt.Close()
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close(t.Context())) }()
	_, err = admin.Exec(t.Context(), `VACUUM ANALYZE quipu_default.jobs`)
	require.NoError(t, err)

	next := ""
	for _, c := range []struct {
		page string
		has  string
	}{
		{"/jobs", ">job-"},
		{"NEXT", ">job-"},
		{"/jobs?last=1h&state=open", ">job-"},
		{"/jobs?flow=sleepy&prefix=job-", ">job-"},
		{"/jobs?tag=rare", "job-00007"},
		{"/jobs?from=2020-01-01T00:00&to=2020-02-01T00:00", "No jobs."},
	} {
		page := c.page
		if page == "NEXT" {
			page = next
		}
		before := rowsRead(t, admin)
		rt := open()
		w := &site{
			t: t, rt: rt,
			page: httptest.NewServer(guarded(rt, access.Config{Local: &access.Who{Name: "ada", Role: access.Operator}})),
		}
		body := w.get(page)
		w.page.Close()
		rt.Close()
		has(t, body, c.has, c.page)
		if c.page == "/jobs" {
			_, link, _ := strings.Cut(body, `rel="next" href="`)
			next, _, _ = strings.Cut(link, `"`)
			next = strings.ReplaceAll(next, "&amp;", "&")
		}
		after := rowsRead(t, admin)
		require.Greater(t, after.scans, before.scans, page)
		require.Less(t, after.rows-before.rows, int64(200), "%s read too many of %d jobs", page, jobs)
	}
}

// startSleepers starts jobs that wait for an hour. One of a thousand has the tag "rare".
func startSleepers(t *testing.T, rt *quipu.Runtime, jobs int) {
	f, err := flow.New("sleepy").Version("1").Trigger("start").Build()
	require.NoError(t, err)
	require.NoError(t, rt.Deploy(t.Context(), f))
	for from := 0; from < jobs; from += quipu.MaxStarts {
		var starts []quipu.StartRequest
		for n := from; n < min(jobs, from+quipu.MaxStarts); n++ {
			r := quipu.StartRequest{Flow: "sleepy", Key: fmt.Sprintf("job-%05d", n), Delay: time.Hour}
			if n%1000 == 7 {
				r.Tags = []string{"rare"}
			}
			starts = append(starts, r)
		}
		all, err := rt.StartMany(t.Context(), starts)
		require.NoError(t, err)
		for _, x := range all {
			require.NoError(t, x.Err)
		}
	}
}

// counted is what the server has counted of the table of jobs.
type counted struct{ scans, rows int64 }

func rowsRead(t *testing.T, c *pgx.Conn) (n counted) {
	t.Helper()
	require.Eventually(t, func() (alone bool) { // a connection counts, at the latest, when it ends
		require.NoError(t, c.QueryRow(t.Context(), `SELECT count(*) = 1 FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&alone))
		return alone
	}, patience, 20*time.Millisecond)
	err := c.QueryRow(t.Context(), `SELECT seq_scan + idx_scan, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'jobs'`).Scan(&n.scans, &n.rows)
	require.NoError(t, err)
	return n
}
