package console

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
)

// Who may see the same share a page that is followed: it is made once for all of them, one page at
// a time, and less often the longer that takes.
func TestFollowersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive()
		var made, now atomic.Int64
		makes := func(context.Context) ([]byte, bool, error) {
			require.EqualValues(t, 1, now.Add(1), "one at a time")
			time.Sleep(300 * time.Millisecond)
			now.Add(-1)
			made.Add(1)
			return []byte("page"), false, nil
		}
		var all sync.WaitGroup
		for n := range 30 {
			all.Go(func() {
				s := sight{address: "/jobs", role: access.Viewer, payloads: n%2 == 0}
				p, leave := l.share(s)
				defer leave()
				for end := time.Now().Add(time.Minute); time.Now().Before(end); {
					body, _, _, due, err := l.look(t.Context(), p, makes)
					require.NoError(t, err)
					require.Equal(t, "page", string(body))
					time.Sleep(time.Until(due))
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, made.Load(), int64(2*20+2), "in a minute, of two sights, each at most every 3 s")
		require.Empty(t, l.pages)
	})
}

// A page that could not be made says so to all who share it, and is tried again; who leaves while it
// is made takes nothing from the others.
func TestFollowersShareFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive()
		p, leave := l.share(sight{address: "/jobs"})
		defer leave()
		away := errors.New("away")
		_, _, _, due, err := l.look(t.Context(), p, func(context.Context) ([]byte, bool, error) {
			return nil, false, away
		})
		require.ErrorIs(t, err, away)
		_, _, _, _, err = l.look(t.Context(), p, nil)
		require.ErrorIs(t, err, away, "it is not tried for each of them")
		time.Sleep(time.Until(due))
		ctx, cancel := context.WithCancel(t.Context())
		body, _, still, _, err := l.look(ctx, p, func(ctx context.Context) ([]byte, bool, error) {
			cancel()
			return []byte("x"), true, ctx.Err()
		})
		require.NoError(t, err)
		require.True(t, still)
		require.Equal(t, "x", string(body))
	})
}

func TestFollowedPagesAreBounded(t *testing.T) {
	t.Parallel()
	b := bounded{most: 10}
	_, err := b.Write([]byte(strings.Repeat("x", 10)))
	require.NoError(t, err)
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, errLarge)
	require.Contains(t, err.Error(), "1048576 bytes")
}
