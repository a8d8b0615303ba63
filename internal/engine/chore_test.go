package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// W10: an error of upkeep is logged when it begins and when it ends, not each time. Retention and every
// engine make room for new jobs.
func TestChoresSayAnErrorOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var said lines
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		var granted atomic.Bool
		st := &expirer{expire: func(_ context.Context, limit int) (bool, error) {
			require.LessOrEqual(t, limit, store.MaxSweep)
			if !granted.Load() {
				return false, errors.New("permission denied")
			}
			return true, nil
		}}
		go func() { done <- Retain(ctx, st, nil, said.logger()) }()
		time.Sleep(time.Hour)
		granted.Store(true)
		time.Sleep(time.Hour)
		stop()
		require.NoError(t, <-done)
		require.Greater(t, st.extended, 100)
		require.Len(t, said.all, 2)
		require.Contains(t, said.all[0], "those of retention")

		all := (&Engine{cfg: Config{Store: st}}).chores()
		at := slices.IndexFunc(all, func(c *chore) bool { return c.name == roomName })
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, time.Minute, all[at].every)
		_, err := all[at].once(ctx)
		require.ErrorContains(t, err, "run `quipu migrate`")
	})
}

// W11: a part of a chore that takes long is followed by a longer pause, so that it never has most of
// a database that is busy.
func TestChoresRestLongerThanTheyTook(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		var busy time.Duration
		st := &expirer{expire: func(context.Context, int) (bool, error) {
			time.Sleep(3 * time.Second)
			busy += 3 * time.Second
			return true, nil
		}}
		go func() { done <- Retain(ctx, st, nil, new(lines).logger()) }()
		time.Sleep(time.Hour)
		stop()
		require.NoError(t, <-done)
		require.InEpsilon(t, 3, time.Hour.Seconds()/busy.Seconds(), 0.1)
	})
}

type expirer struct {
	store.Engine
	expire   func(context.Context, int) (bool, error)
	extended int
}

func (e *expirer) Expire(ctx context.Context, limit int) (bool, error) { return e.expire(ctx, limit) }

func (e *expirer) Retire(context.Context, store.Archive) (bool, error) { return false, nil }

func (e *expirer) Extend(ctx context.Context) error {
	if e.extended++; ctx.Err() != nil {
		return store.ErrPartition
	}
	return nil
}

// A topic with requests that nobody took is warned about once in ten minutes, if no living
// process has a handler for it.
func TestUnservedTopicsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{Space: "test"})
		_, err := st.OpenSession(t.Context(), store.Process{Name: "w", Topics: []string{"served"}, Lease: time.Hour})
		require.NoError(t, err)
		said := &lines{}
		e := &Engine{cfg: Config{Store: st, Logger: said.logger()}}
		sent := func(topic string) store.DueRow {
			return store.DueRow{Kind: journal.MessageRequest, Topic: topic, Publication: 1, Turn: 1, TurnSent: 1}
		}
		fresh, next := sent("fresh"), sent("next")
		fresh.Publication, fresh.TurnSent = 0, 0 // not sent yet
		next.Turn = 2                            // nor this turn of it
		due := []store.DueRow{
			fresh, next, sent("served"), sent("nobody"), sent("nobody"), {Kind: journal.MessageLeg1, Topic: "leg1", Publication: 1},
		}
		var u unserved
		for range 20 * 60 { // twenty minutes
			u.look(t.Context(), e, due)
			time.Sleep(time.Second)
		}
		require.Len(t, said.all, 2)
		require.Contains(t, said.all[0], "topic=nobody")
		require.Contains(t, said.all[1], "topic=nobody")
	})
}
