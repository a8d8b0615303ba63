package effect

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/journal"
)

// slow is a store in which a sent outcome takes its time.
type slow struct {
	*effectstest.Store
	takes func(name string) time.Duration
	err   map[string]error // of outcomes that are sent
}

func (s slow) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	time.AfterFunc(s.takes(e.Name), func() {
		if err := s.err[e.Name]; err != nil {
			ended(store.EffectRow{}, err)
			return
		}
		ended(s.FinishEffect(context.WithoutCancel(ctx), l, e, false))
	})
}

// recorded are the effects that have an outcome, in the order in which they began.
func recorded(s *effectstest.Store) (names []string) {
	for _, row := range s.Rows(theRequest) {
		if row.State == store.EffectCompleted {
			names = append(names, row.Name)
		}
	}
	return names
}

// A handler goes on with a result that is being recorded. What it does next outside waits for the
// record, and so does the end of the run, whichever outcome gets through first.
func TestE4NothingIsDoneOnAnOutcomeThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]map[string]time.Duration{
		"at once": {}, "in order": {"a": 1, "now": 2, "later": 3}, "the first last": {"a": 3, "now": 2, "later": 1},
		"the second last": {"a": 1, "now": 3, "later": 2},
	} {
		for _, next := range []effects.Class{effects.Guarded, effects.Idempotent, effects.Tx} {
			t.Run(name+" "+string(next), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := &bench{t: t, store: newStore(), turn: 1}
					ctx, s := b.run()
					s.cfg.Store = slow{Store: b.store, takes: func(name string) time.Duration {
						return takes[name] * time.Second
					}}
					c := counting[int]{value: 1}
					_, err := effects.Do(ctx, "a", c.fn)
					require.NoError(t, err)
					for _, name := range []string{"now", "later"} {
						_, err = effects.Do(ctx, name, c.fn, effects.Pure)
						require.NoError(t, err)
					}
					if takes["a"] > 0 {
						require.Empty(t, recorded(b.store), "the handler did not wait")
					}
					before := func() (int, error) {
						require.Equal(t, []string{"a", "now", "later"}, recorded(b.store))
						return 2, nil
					}
					if next == effects.Tx {
						_, err = effects.DoTx(ctx, "b", func(context.Context, any) (int, error) { return before() })
					} else {
						_, err = effects.Do(ctx, "b", func(context.Context) (int, error) { return before() }, next)
					}
					require.NoError(t, err)
					require.NoError(t, s.Flush())
					require.Equal(t, []string{"a", "now", "later", "b"}, recorded(b.store))
					require.NoError(t, s.Verdict())
				})
			})
		}
	}
}

func TestE4AnOutcomeThatIsRefusedEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"stale": store.ErrStale, "rejected": store.ErrRejected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &bench{t: t, store: newStore(), turn: 1}
				ctx, s := b.run()
				s.cfg.Store = slow{Store: b.store, takes: func(string) time.Duration {
					return time.Second
				}, err: map[string]error{"a": refusal}}
				var lost []error
				s.cfg.Lost = func(err error) { lost = append(lost, err) }
				c := counting[int]{value: 1}
				_, err := effects.Do(ctx, "a", c.fn)
				require.NoError(t, err)
				_, err = effects.Do(ctx, "b", c.fn)
				require.ErrorIs(t, err, refusal)
				require.Equal(t, 1, c.calls, "b was not called")
				require.ErrorIs(t, s.Verdict(), refusal)
				require.ErrorIs(t, s.Flush(), refusal)
				require.Equal(t, refusal == store.ErrStale, slices.ContainsFunc(lost, func(err error) bool {
					return err != nil
				}))
				require.Empty(t, recorded(b.store))
			})
		})
	}
}

// What was done outside is recorded, though an outcome before it is not: no later run would know.
// Whatever is recorded after it, the run ends with the error.
func TestE4WhatWasDoneIsRecordedBesideARefusedOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes map[string]time.Duration
		want  []string
	}{
		"in order":       {map[string]time.Duration{"a": 1, "b": 2, "now": 3}, []string{"b", "now"}},
		"the first last": {map[string]time.Duration{"a": 3, "b": 1, "now": 2}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &bench{t: t, store: newStore(), turn: 1}
				ctx, s := b.run()
				s.cfg.Store = slow{
					Store: b.store, takes: func(name string) time.Duration { return c.takes[name] * time.Second },
					err: map[string]error{"a": store.ErrRejected},
				}
				one := counting[int]{value: 1}
				_, err := effects.Do(ctx, "b", func(context.Context) (int, error) { return effects.Do(ctx, "a", one.fn) })
				require.NoError(t, err)
				_, err = effects.Do(ctx, "now", one.fn, effects.Pure)
				require.NoError(t, err)
				_, err = effects.Do(ctx, "c", one.fn)
				require.ErrorIs(t, err, store.ErrRejected)
				require.Equal(t, 2, one.calls, "c was not called")
				require.ErrorIs(t, s.Flush(), store.ErrRejected)
				require.Equal(t, c.want, recorded(b.store))
			})
		})
	}
}
