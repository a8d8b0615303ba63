package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// W8: a session survives its connection: the next renewal uses a new one.
func TestSessionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	s := open(t)
	x := must(s.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}))(t)
	row := request(t, s, startJobs(t, s, "k")[0])
	must(s.Lease(t.Context(), row.Job, row.GUID, 1, "w", x.ID()))(t)
	for range 2 {
		require.NoError(t, x.(*session).alive.raw.PgConn().Conn().Close())
		_, err := x.Renew(t.Context(), nil)
		require.Error(t, err)
		must(x.Renew(t.Context(), nil))(t)
	}
	require.Equal(t, x.ID(), rowOf(t, s, row.Job, row.GUID).Session)
	require.NoError(t, x.(*session).alive.raw.PgConn().Conn().Close())
	require.Error(t, x.End(t.Context()))
	require.NoError(t, x.End(t.Context()), "it may be repeated")
	require.Zero(t, rowOf(t, s, row.Job, row.GUID).Session)
}
